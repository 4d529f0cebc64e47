//! Which of the images that lie in one place is meant: the one of that name, for this host's processor.

use std::collections::BTreeSet;

use oci_spec::image::{Descriptor, ImageConfiguration, ImageIndex, ImageManifest};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::layer::{Layer, hexadecimal};
use super::source::Source;
use super::{Bad, ContainerImage, Found, bad};

/// Where names are written: that of the standard, and that of programs that write several images into one archive.
const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

/// An index may be in an index in an index; nobody writes more.
const DEEPEST: usize = 3;

/// The most images in one place.
const MOST_IMAGES: usize = 1024;

/// The most layers of an image: no engine mounts as many.
const MOST_LAYERS: usize = 1024;

/// A manifest that may be the one.
#[derive(Debug, Clone)]
struct Candidate {
    names: BTreeSet<String>,
    /// The entry of the outermost index that it is in.
    entry: usize,
    descriptor: Descriptor,
}

/// What an archive of the older kind says of an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Finds the image that is meant.
pub(super) fn choose(source: &Source, name: Option<&str>) -> Found<ContainerImage> {
    if let Some(index) = source.document("index.json")? {
        return of_layout(source, &index, name);
    }
    match source.document("manifest.json")? {
        Some(saved) => of_saved(source, &saved, name),
        None => Err(bad(
            "it is no container image: it has neither index.json (an image layout) nor manifest.json (`docker save`)",
        )),
    }
}

fn of_layout(source: &Source, index: &[u8], name: Option<&str>) -> Found<ContainerImage> {
    let mut all = Vec::new();
    let index: ImageIndex = parsed("index.json", index)?;
    for (entry, descriptor) in index.manifests().iter().enumerate() {
        let annotations = descriptor.annotations().iter().flatten();
        let names =
            annotations.filter(|(key, _)| NAMES.contains(&key.as_str())).map(|(_, value)| value.clone()).collect();
        expand(source, Candidate { names, entry, descriptor: descriptor.clone() }, DEEPEST, &mut all)?;
    }
    let called: Vec<&Candidate> = all.iter().filter(|one| name.is_none_or(|name| one.is_called(name))).collect();
    if let (true, Some(name)) = (called.is_empty(), name) {
        return Err(unknown(name, all.iter().map(Candidate::label)));
    }
    let (mut fit, mut others) = (Vec::new(), BTreeSet::new());
    for candidate in called {
        match candidate.platform(source)? {
            Some(platform) if platform == host_platform() => fit.push(candidate),
            Some(platform) => drop(others.insert(platform)),
            None => {}
        }
    }
    // Entries of one index that differ in what they ask of a processor beyond its kind: the first is the plainest.
    fit.dedup_by(|later, first| {
        let same_name = !first.names.is_empty() && later.names == first.names;
        same_name || later.entry == first.entry || later.descriptor.digest() == first.descriptor.digest()
    });
    let chosen = only(fit, Candidate::label, &others)?;
    let bytes = verified(source, &chosen.descriptor)?;
    let manifest: ImageManifest = parsed("manifest", &bytes)?;
    let config = verified(source, manifest.config())?;
    let layers = manifest.layers().iter().map(|layer| Ok((blob_name(layer)?, Some((digest_of(layer)?, layer.size())))));
    let layers = layers.collect::<Found<Vec<_>>>()?;
    let name = name.map(str::to_owned).or_else(|| chosen.names.first().cloned());
    image(source, name, chosen.descriptor.digest().to_string(), &config, layers)
}

impl Candidate {
    fn is_called(&self, name: &str) -> bool {
        self.names.contains(name) || self.descriptor.digest().to_string() == name
    }

    fn label(&self) -> String {
        self.names.first().cloned().unwrap_or_else(|| self.descriptor.digest().to_string())
    }

    /// System and processor that it is for; `None` where it is no image of a system (a signature, an attestation).
    fn platform(&self, source: &Source) -> Found<Option<String>> {
        if let Some(platform) = self.descriptor.platform() {
            let named = format!("{}/{}", platform.os(), platform.architecture());
            return Ok(Some(named).filter(|named| named != "unknown/unknown"));
        }
        let manifest: ImageManifest = parsed("manifest", &verified(source, &self.descriptor)?)?;
        let config = verified(source, manifest.config())?;
        // What is no configuration of an image belongs to something else that is kept beside images.
        let Ok(config) = serde_json::from_slice::<ImageConfiguration>(&config) else { return Ok(None) };
        Ok(Some(format!("{}/{}", config.os(), config.architecture())))
    }
}

/// Adds a manifest, or all those of an index.
fn expand(source: &Source, candidate: Candidate, deeper: usize, all: &mut Vec<Candidate>) -> Found<()> {
    let kind = candidate.descriptor.media_type().to_string();
    if !kind.contains("index") && !kind.contains("manifest.list") {
        if all.len() >= MOST_IMAGES {
            return Err(bad(format!("it has more than {MOST_IMAGES} images")));
        }
        all.push(candidate);
        return Ok(());
    }
    let Some(deeper) = deeper.checked_sub(1) else {
        return Err(bad("its indexes lie within each other without end"));
    };
    let index: ImageIndex = parsed("index", &verified(source, &candidate.descriptor)?)?;
    let inner =
        index.manifests().iter().map(|descriptor| Candidate { descriptor: descriptor.clone(), ..candidate.clone() });
    inner.into_iter().try_for_each(|inner| expand(source, inner, deeper, all))
}

fn of_saved(source: &Source, saved: &[u8], name: Option<&str>) -> Found<ContainerImage> {
    let all: Vec<Saved> = parsed("manifest.json", saved)?;
    let tags = |one: &Saved| one.repo_tags.clone().unwrap_or_default();
    let label = |one: &Saved| tags(one).first().cloned().unwrap_or_else(|| one.config.clone());
    let called: Vec<&Saved> = all
        .iter()
        .filter(|one| name.is_none_or(|name| one.config == name || tags(one).iter().any(|tag| tag == name)))
        .collect();
    if let (true, Some(name)) = (called.is_empty(), name) {
        return Err(unknown(name, all.iter().map(label)));
    }
    let chosen = only(called, label, &BTreeSet::new())?;
    let config = source.document(&chosen.config)?.ok_or_else(|| bad(format!("it has no {}", chosen.config)))?;
    let digest = hexadecimal(&Sha256::digest(&config));
    // The name of the configuration is its digest, with most programs.
    let named = chosen.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
    if is_hexadecimal(named) && named != digest {
        return Err(bad(format!("its {} is not what its digest says", chosen.config)));
    }
    let layers = chosen.layers.iter().map(|layer| (layer.clone(), None)).collect();
    let name = name.map(str::to_owned).or_else(|| tags(chosen).first().cloned());
    image(source, name, format!("sha256:{digest}"), &config, layers)
}

/// The only one that is left.
fn only<'a, T>(fit: Vec<&'a T>, label: impl Fn(&T) -> String, others: &BTreeSet<String>) -> Found<&'a T> {
    let mut labels: Vec<String> = fit.iter().map(|one| label(one)).collect();
    let mut fit = fit.into_iter();
    match (fit.next(), fit.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if others.is_empty() => Err(bad("there is no image in it")),
        (None, _) => Err(wrong_platform(&others.iter().cloned().collect::<Vec<_>>().join(", "))),
        _ => {
            labels.sort();
            let why = format!("there are several images in it: {}", listed(&labels));
            Err(Bad::new(why, "say which: { path = \"..\", name = \"..\" }"))
        }
    }
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = names.len().saturating_sub(SHOWN);
    let shown =
        names.iter().take(SHOWN).map(|name| format!("`{}`", name.escape_debug())).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn unknown(name: &str, there: impl Iterator<Item = String>) -> Bad {
    let there: Vec<String> = there.collect::<BTreeSet<_>>().into_iter().collect();
    let why = format!("there is no image `{}` in it, only {}", name.escape_debug(), listed(&there));
    Bad::new(why, "correct its `name`, or leave it out where there is one alone")
}

fn wrong_platform(there: &str) -> Bad {
    let host = host_platform();
    Bad::new(
        format!("it is for {there}, and this host is {host}"),
        format!(
            "take the image for this host, for instance by `skopeo copy --override-arch {}` or `docker pull --platform {host}`",
            processor()
        ),
    )
}

/// This host as images name it.
fn host_platform() -> String {
    format!("linux/{}", processor())
}

/// This processor as the Go language, and so images, name it.
pub(crate) fn processor() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// An image from its configuration and where its layers are.
fn image(
    source: &Source,
    name: Option<String>,
    digest: String,
    config: &[u8],
    layers: Vec<(String, Option<(String, u64)>)>,
) -> Found<ContainerImage> {
    let config: ImageConfiguration = parsed("configuration", config)?;
    let platform = format!("{}/{}", config.os(), config.architecture());
    if platform != host_platform() {
        return Err(wrong_platform(&platform));
    }
    let uncompressed = config.rootfs().diff_ids();
    if uncompressed.len() != layers.len() || layers.len() > MOST_LAYERS {
        let why = format!("its configuration is of {} layers, and it has {}", uncompressed.len(), layers.len());
        return Err(bad(why));
    }
    let layers = uncompressed.iter().zip(layers).map(|(uncompressed, (blob, packed))| {
        check_digest(uncompressed)?;
        Ok(Layer { blob, packed, uncompressed: uncompressed.clone() })
    });
    let layers = layers.collect::<Found<_>>()?;
    let settings = config.config().clone().unwrap_or_default();
    let variable = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let env = settings.env().iter().flatten().filter_map(variable);
    // What marks the processes of a run is not an image's to say.
    let is_usable = |(name, value): &(String, String)| {
        !name.is_empty() && !name.starts_with("TARE_") && !format!("{name}{value}").contains('\0')
    };
    let env = env.filter(is_usable).collect();
    let directory = settings.working_dir().clone().filter(|path| path.starts_with('/') && !path.contains('\0'));
    Ok(ContainerImage { path: source.path.clone(), name, digest, env, directory, layers })
}

fn parsed<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8]) -> Found<T> {
    serde_json::from_slice(bytes).map_err(|error| bad(format!("its {what} cannot be understood: {error}")))
}

/// The blob of a document, which must be what its digest and size say.
fn verified(source: &Source, descriptor: &Descriptor) -> Found<Vec<u8>> {
    let name = blob_name(descriptor)?;
    let bytes = source.document(&name)?.ok_or_else(|| bad(format!("it has no {name}")))?;
    if bytes.len() as u64 != descriptor.size() {
        return Err(bad(format!("its {name} has {} bytes, and its index says {}", bytes.len(), descriptor.size())));
    }
    if format!("sha256:{}", hexadecimal(&Sha256::digest(&bytes))) != digest_of(descriptor)? {
        return Err(bad(format!("its {name} is not what its digest says")));
    }
    Ok(bytes)
}

fn digest_of(descriptor: &Descriptor) -> Found<String> {
    let digest = descriptor.digest().to_string();
    check_digest(&digest).map(|()| digest)
}

fn blob_name(descriptor: &Descriptor) -> Found<String> {
    Ok(format!("blobs/{}", digest_of(descriptor)?.replacen(':', "/", 1)))
}

/// Only then may it be part of a path.
fn check_digest(digest: &str) -> Found<()> {
    if digest.strip_prefix("sha256:").is_some_and(is_hexadecimal) {
        return Ok(());
    }
    Err(bad(format!("`{}` is no digest of the kind sha256", digest.escape_debug())))
}

fn is_hexadecimal(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
