#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::layer::hexadecimal;
use super::*;

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(bytes)))
}

fn header(path: &str, kind: EntryType, link: &str, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_uid(rustix::process::getuid().as_raw().into());
    header.set_gid(rustix::process::getgid().as_raw().into());
    header.set_mtime(1_000_000_000);
    // Written by hand, as the crate refuses to write what is to be refused.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    header
}

/// A layer: each entry a path, which ends with `/` for a directory; its content, or where it leads for `-> ` (a symbolic
/// link) and `= ` (a hard link).
fn layer(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, content) in entries {
        let (kind, link, data) = match (content.strip_prefix("-> "), content.strip_prefix("= ")) {
            (Some(link), _) => (EntryType::Symlink, link, ""),
            (_, Some(link)) => (EntryType::Link, link, ""),
            _ if path.ends_with('/') => (EntryType::Directory, "", ""),
            _ => (EntryType::Regular, "", *content),
        };
        builder.append(&header(path, kind, link, 0o755, data.len()), data.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    // A frame that is for others, and two that hold halves.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let (one, two) = bytes.split_at(bytes.len() / 2);
    let pack = |bytes| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    [skipped.clone(), pack(one), pack(two), skipped].concat()
}

/// A layout that is being made.
struct Layout {
    place: tempfile::TempDir,
    manifests: Vec<Value>,
}

impl Layout {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("blobs/sha256")).unwrap();
        fs::write(place.path().join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
        Self { place, manifests: Vec::new() }
    }

    /// The layout with one image of these layers.
    fn of(layers: &[Vec<u8>]) -> Self {
        let mut layout = Self::new();
        layout.add(None, choose::processor(), layers);
        layout
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn blob_path(&self, descriptor: &Value) -> PathBuf {
        self.path().join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"))
    }

    fn blob(&self, kind: &str, bytes: &[u8]) -> Value {
        let digest = sha256(bytes);
        let descriptor = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
        fs::write(self.blob_path(&descriptor), bytes).unwrap();
        descriptor
    }

    /// The manifest of an image of these archives, the first plain, the second gzip, the third zstd and so on.
    fn image(&self, processor: &str, layers: &[Vec<u8>]) -> Value {
        let kind = |what: &str| format!("application/vnd.oci.image.{what}");
        let config = json!({
            "architecture": processor, "os": "linux",
            "config": {"Env": ["PATH=/app/bin", "TARE_RUN=stolen", "EMPTY="], "WorkingDir": "/app", "ExposedPorts": {"80/tcp": {}}, "Cmd": null},
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| sha256(layer)).collect::<Vec<_>>()},
        });
        let config = self.blob(&kind("config.v1+json"), config.to_string().as_bytes());
        let packed = layers.iter().enumerate().map(|(number, layer)| match number % 3 {
            0 => self.blob(&kind("layer.v1.tar"), layer),
            1 => self.blob(&kind("layer.v1.tar+gzip"), &gzip(layer)),
            _ => self.blob(&kind("layer.v1.tar+zstd"), &zstd(layer)),
        });
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": packed.collect::<Vec<_>>()});
        self.blob(&kind("manifest.v1+json"), manifest.to_string().as_bytes())
    }

    fn add(&mut self, name: Option<&str>, processor: &str, layers: &[Vec<u8>]) {
        let mut descriptor = self.image(processor, layers);
        if let Some(name) = name {
            descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        }
        self.manifests.push(descriptor);
        self.write_index();
    }

    fn write_index(&self) {
        let index = json!({"schemaVersion": 2, "manifests": self.manifests});
        fs::write(self.path().join("index.json"), index.to_string()).unwrap();
    }

    /// The only image's manifest.
    fn manifest(&self) -> Value {
        serde_json::from_slice(&fs::read(self.blob_path(&self.manifests[0])).unwrap()).unwrap()
    }

    /// Another manifest in its place, with a digest of its own that is right.
    fn replace_manifest(&mut self, manifest: &Value) {
        self.manifests = vec![self.blob("application/vnd.oci.image.manifest.v1+json", manifest.to_string().as_bytes())];
        self.write_index();
    }

    /// The whole as an archive.
    fn archive(&self) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut builder = Builder::new(file.reopen().unwrap());
        builder.append_dir_all(".", self.path()).unwrap();
        builder.finish().unwrap();
        file
    }
}

/// Unpacks an image elsewhere than into the cache.
fn unpacked(path: &Path) -> std::result::Result<tempfile::TempDir, String> {
    let place = tempfile::tempdir().unwrap();
    let (source, image) = found(path, None).map_err(|bad| bad.why)?;
    let root = place.path().join("new");
    fs::create_dir(&root).unwrap();
    unpack(&source, &image, &root).map_err(|bad| bad.why)?;
    Ok(place)
}

/// All that is in it: path and content, or where a link leads.
fn listing(place: &tempfile::TempDir) -> Vec<String> {
    fn walk(folder: &Path, root: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(root).unwrap().display().to_string();
            if path.is_symlink() {
                all.push(format!("{shown} -> {}", fs::read_link(&path).unwrap().display()));
            } else if path.is_dir() {
                all.push(format!("{shown}/"));
                walk(&path, root, all);
            } else {
                all.push(format!("{shown} {}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let (root, mut all) = (place.path().join("new"), Vec::new());
    walk(&root, &root, &mut all);
    all.sort();
    all
}

fn listed_of(layers: &[&[(&str, &str)]]) -> Vec<String> {
    let layers: Vec<_> = layers.iter().map(|entries| layer(entries)).collect();
    listing(&unpacked(Layout::of(&layers).path()).unwrap())
}

#[test]
fn later_layers_replace_and_take_away() {
    let lower: &[(&str, &str)] =
        &[("a/", ""), ("a/one", "1"), ("a/two", "2"), ("b/", ""), ("b/c/", ""), ("b/c/d", "3"), ("f", "x")];
    let upper: &[(&str, &str)] = &[("a/.wh.one", ""), ("a/new", "n"), ("./b", "-> a"), ("f/", ""), ("f/g", "y")];
    assert_eq!(listed_of(&[lower, upper]), ["a/", "a/new n", "a/two 2", "b -> a", "f/", "f/g y"]);
    // Through a link of a lower layer's, from the image's own root.
    let linked: &[(&str, &str)] = &[("b", "-> /a"), ("b/late", "l"), ("/absolute", "r")];
    assert_eq!(listed_of(&[lower, linked]), ["a/", "a/late l", "a/one 1", "a/two 2", "absolute r", "b -> /a", "f x"]);
}

#[test]
fn whiteouts_are_of_lower_layers_wherever_they_stand() {
    let lower: &[(&str, &str)] = &[("d/", ""), ("d/old", "o"), ("d/s/", ""), ("d/s/old", "o"), ("e", "e")];
    let first: &[(&str, &str)] =
        &[("d/.wh..wh..opq", ""), ("d/s/new", "n"), (".wh.none", ""), (".wh.e", ""), ("e", "again")];
    let last: &[(&str, &str)] =
        &[("d/s/new", "n"), ("e", "again"), (".wh.e", ""), ("d/.wh..wh..opq", ""), (".wh..wh.plnk", "")];
    for upper in [first, last] {
        assert_eq!(listed_of(&[lower, upper]), ["d/", "d/s/", "d/s/new n", "e again"], "{upper:?}");
    }
}

#[test]
fn layers_come_in_three_forms_and_keep_what_files_are() {
    let mut program = Builder::new(Vec::new());
    program.append(&header("bin/tool", EntryType::Regular, "", 0o4755, 2), &b"ab"[..]).unwrap();
    program.append(&header("dev", EntryType::Char, "", 0o666, 0), std::io::empty()).unwrap();
    let long = "n".repeat(150);
    let mut named = Header::new_gnu();
    named.set_size(1);
    named.set_mode(0o644);
    named.set_uid(rustix::process::getuid().as_raw().into());
    named.set_gid(rustix::process::getgid().as_raw().into());
    program.append_data(&mut named, &long, &b"z"[..]).unwrap();
    let layers =
        [layer(&[("plain", "1")]), program.into_inner().unwrap(), layer(&[("hard", "= bin/tool"), ("late", "2")])];
    let layout = Layout::of(&layers);
    for place in [unpacked(layout.path()).unwrap(), unpacked(layout.archive().path()).unwrap()] {
        let root = place.path().join("new");
        assert_eq!(listing(&place), ["bin/", "bin/tool ab", "hard ab", "late 2", &format!("{long} z"), "plain 1"]);
        let tool = root.join("bin/tool").metadata().unwrap();
        assert_eq!((tool.permissions().mode() & 0o7777, tool.mtime(), tool.nlink()), (0o4755, 1_000_000_000, 2));
        assert_eq!(root.join("hard").metadata().unwrap().ino(), tool.ino());
    }
}

#[test]
fn what_leads_out_is_refused_or_stays_inside() {
    let mark = "tare-image-was-here";
    let refused: &[&[(&str, &str)]] = &[
        &[("../x", "1")],
        &[("a/../../x", "1")],
        &[("h", "= ../../etc/passwd")],
        &[("h", "= /etc/passwd")],
        &[("h", "= none")],
        &[("l", "-> loop"), ("loop", "-> l"), ("l/x", "1")],
        &[("file", "1"), ("file/x", "1")],
        &[(".wh...", "")],
        &[("a/.wh..", "")],
    ];
    for entries in refused {
        let error = unpacked(Layout::of(&[layer(entries)]).path()).unwrap_err();
        assert!(error.contains("its entry"), "{entries:?}: {error}");
    }
    let tmp = std::env::temp_dir();
    let (out, file) = (format!("-> {}", tmp.display()), format!("-> {}", tmp.join(mark).display()));
    let through = ("out/".to_owned() + mark, "up/".to_owned() + mark);
    let inside = [
        layer(&[("out", &out), ("up", "-> ../../../../../../tmp"), ("tmp/", "")]),
        layer(&[
            (&through.0, "1"),
            (&through.1, "2"),
            (mark, &file),
            (mark, "3"),
            ("proc", "-> /proc/self/root"),
            (".wh.out", ""),
        ]),
    ];
    let place = unpacked(Layout::of(&inside).path());
    assert!(!tmp.join(mark).exists(), "written through a link: {place:?}");
    // The second layer names a directory that only the host has where TMPDIR is another.
    if tmp == Path::new("/tmp") {
        let all = listing(&place.unwrap());
        assert!(all.contains(&format!("tmp/{mark} 2")) && all.contains(&format!("{mark} 3")), "{all:?}");
    }
    // Each link leads to the end of what lies below the one before.
    let down = "d/".repeat(45);
    let pairs = (0..12).flat_map(|n| {
        let from = if n == 0 { String::new() } else { format!("l{n}/") };
        [(format!("{from}{down}"), String::new()), (format!("l{}", n + 1), format!("-> {from}{down}"))]
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    let entries: Vec<(&str, &str)> = pairs.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    let error = unpacked(Layout::of(&[layer(&entries)]).path()).unwrap_err();
    assert!(error.contains("lies too deep"), "{error}");
}

#[test]
fn what_is_not_whole_is_refused() {
    let tar = layer(&[("a", "1")]);
    let said = |change: &dyn Fn(&mut Layout)| {
        let mut layout = Layout::of(&[tar.clone(), tar.clone()]);
        change(&mut layout);
        unpacked(layout.path()).unwrap_err()
    };
    let layer_path = |layout: &Layout, number: usize| layout.blob_path(&layout.manifest()["layers"][number]);
    let flipped = said(&|layout| {
        let path = layer_path(layout, 0);
        let mut bytes = fs::read(&path).unwrap();
        bytes[512] ^= 1;
        fs::write(path, bytes).unwrap();
    });
    assert!(flipped.contains("not what its digest says"), "{flipped}");
    let short = said(&|layout| {
        let file = fs::OpenOptions::new().write(true).open(layer_path(layout, 1)).unwrap();
        file.set_len(40).unwrap();
    });
    assert!(short.contains("has 40 bytes, and the manifest says"), "{short}");
    let missing = said(&|layout| fs::remove_file(layer_path(layout, 0)).unwrap());
    assert!(missing.contains("it has no blobs/sha256/"), "{missing}");
    let huge = said(&|layout| {
        let mut manifest = layout.manifest();
        manifest["layers"][0]["size"] = json!(10_u64 << 30);
        layout.replace_manifest(&manifest);
    });
    assert!(huge.contains("10737418240"), "{huge}");
    let path = said(&|layout| {
        let mut manifest = layout.manifest();
        manifest["layers"][0]["digest"] = json!("sha256:../../../../etc/passwd");
        layout.replace_manifest(&manifest);
    });
    assert!(path.contains("cannot be understood") || path.contains("no digest"), "{path}");
    let manifest = said(&|layout| fs::write(layout.blob_path(&layout.manifests[0]), "{}").unwrap());
    assert!(manifest.contains("has 2 bytes, and its index says"), "{manifest}");
    let fewer = said(&|layout| {
        let mut manifest = layout.manifest();
        manifest["layers"].as_array_mut().unwrap().pop();
        layout.replace_manifest(&manifest);
    });
    assert!(fewer.contains("of 2 layers, and it has 1"), "{fewer}");
    // The manifest is right, and what is in the layer is another archive.
    let other = said(&|layout| {
        let mut manifest = layout.manifest();
        manifest["layers"][1] = layout.blob("application/vnd.oci.image.layer.v1.tar", &layer(&[("b", "2")]));
        layout.replace_manifest(&manifest);
    });
    assert!(other.contains("not what its configuration says"), "{other}");
}

#[test]
fn an_archive_that_claims_gigabytes_is_refused() {
    let mut cut = layer(&[("a", "1")]);
    cut[..512].copy_from_slice(header("a", EntryType::Regular, "", 0o644, 10 << 30).as_bytes());
    let error = unpacked(Layout::of(&[cut]).path()).unwrap_err();
    assert!(error.contains("is cut off"), "{error}");
    let mut name = layer(&[("a", "1")]);
    name[..512].copy_from_slice(header("a", EntryType::GNULongName, "", 0o644, 10 << 30).as_bytes());
    let error = unpacked(Layout::of(&[name]).path()).unwrap_err();
    assert!(error.contains("a name longer than"), "{error}");
    // Little that unpacks to much.
    let tar = layer(&[("zeros", &"\0".repeat(1 << 20))]);
    let layout = Layout::of(&[layer(&[]), tar]);
    let (source, image) = found(layout.path(), None).unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut tree = Tree::open(place.path(), false).unwrap();
    let mut budget = Budget { bytes: 1 << 19, remedy: "" };
    let error = image.layers[1].read(&source, &mut budget, |tar| tree.apply(tar)).unwrap_err();
    assert!(error.why.contains("more than there is room for"), "{error:?}");
}

#[test]
fn one_of_several_is_named() {
    let tar = |content| vec![layer(&[("which", content)])];
    let mut layout = Layout::new();
    layout.add(Some("app:1"), choose::processor(), &tar("1"));
    layout.add(Some("app:2"), choose::processor(), &tar("2"));
    let archive = layout.archive();
    for path in [layout.path(), archive.path()] {
        let error = container_look(path, None).unwrap_err().to_string();
        assert!(error.contains("several images in it: `app:1`, `app:2`") && error.contains("name = "), "{error}");
        let error = container_look(path, Some("app:3")).unwrap_err().to_string();
        assert!(error.contains("no image `app:3` in it, only `app:1`, `app:2`"), "{error}");
        let two = container_look(path, Some("app:2")).unwrap();
        assert_eq!(
            (two.name.as_deref(), &two.digest),
            (Some("app:2"), &layout.manifests[1]["digest"].as_str().unwrap().to_owned())
        );
        assert_eq!(container_look(path, Some(&two.digest)).unwrap().layers, two.layers);
        assert_eq!(two.directory.as_deref(), Some("/app"));
        assert_eq!(two.env, [("PATH".into(), "/app/bin".into()), ("EMPTY".into(), String::new())]);
    }
}

#[test]
fn the_image_of_this_processor_is_taken() {
    let other = if choose::processor() == "arm64" { "amd64" } else { "arm64" };
    let mut layout = Layout::new();
    layout.add(None, other, &[layer(&[("x", "other")])]);
    let error = container_look(layout.path(), None).unwrap_err().to_string();
    assert!(
        error.contains(&format!("it is for linux/{other}, and this host is linux/{}", choose::processor())),
        "{error}"
    );
    // An index of both, with what a builder says of how it was made.
    let mut both = Vec::new();
    for (platform, name) in [("unknown", "0"), (other, "1"), (choose::processor(), "2")] {
        let mut manifest = layout.image(platform, &[layer(&[("x", name)])]);
        let os = if platform == "unknown" { "unknown" } else { "linux" };
        manifest["platform"] = json!({"os": os, "architecture": platform});
        both.push(manifest);
    }
    let index = json!({"schemaVersion": 2, "manifests": both}).to_string();
    layout.manifests = vec![layout.blob("application/vnd.oci.image.index.v1+json", index.as_bytes())];
    layout.write_index();
    assert_eq!(listing(&unpacked(layout.path()).unwrap()), ["x 2"]);
}

/// What `docker save` wrote before it wrote layouts, and what `podman save` writes.
#[test]
fn a_saved_image_is_read() {
    let layers = [layer(&[("a", "1")]), layer(&[("b", "2")])];
    let config = json!({
        "architecture": choose::processor(), "os": "linux", "config": null,
        "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| sha256(layer)).collect::<Vec<_>>()},
    })
    .to_string();
    let digest = sha256(config.as_bytes());
    let name = format!("{}.json", digest.trim_start_matches("sha256:"));
    let write = |config: &str, last: &[u8]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut builder = Builder::new(file.reopen().unwrap());
        let saved =
            json!([{"Config": name, "RepoTags": ["app:1"], "Layers": ["one/layer.tar", "two/layer.tar"]}]).to_string();
        for (path, bytes) in [
            (name.as_str(), config.as_bytes()),
            ("real/layer.tar", &layers[0]),
            ("two/layer.tar", last),
            ("manifest.json", saved.as_bytes()),
        ] {
            builder.append(&header(path, EntryType::Regular, "", 0o644, bytes.len()), bytes).unwrap();
        }
        builder
            .append(&header("one/layer.tar", EntryType::Symlink, "../real/layer.tar", 0o644, 0), std::io::empty())
            .unwrap();
        builder.finish().unwrap();
        file
    };
    let good = write(&config, &layers[1]);
    let image = container_look(good.path(), Some("app:1")).unwrap();
    assert_eq!((image.digest, image.name), (digest, Some("app:1".into())));
    assert_eq!(listing(&unpacked(good.path()).unwrap()), ["a 1", "b 2"]);
    let wrong = unpacked(write(&config, &layers[0]).path()).unwrap_err();
    assert!(wrong.contains("not what its configuration says"), "{wrong}");
    let wrong = unpacked(write(&config.replace("null", "{}"), &layers[1]).path()).unwrap_err();
    assert!(wrong.contains("not what its digest says"), "{wrong}");
    let mut bytes = fs::read(good.path()).unwrap();
    bytes.truncate(3 * 512);
    fs::write(good.path(), &bytes).unwrap();
    let cut = unpacked(good.path()).unwrap_err();
    assert!(cut.contains("cut off"), "{cut}");
    fs::write(good.path(), gzip(&bytes)).unwrap();
    let error = container_look(good.path(), None).unwrap_err().to_string();
    assert!(error.contains("itself is compressed") && error.contains("uncompress it"), "{error}");
}

#[test]
fn what_is_no_image_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let said = |path: &Path| container_look(path, None).unwrap_err().to_string();
    assert!(said(place.path()).contains("index.json"), "{}", said(place.path()));
    assert!(said(&place.path().join("none")).contains("not there"));
    assert!(said(Path::new("/dev/null")).contains("neither a directory nor a file"));
    let file = place.path().join("text");
    fs::write(&file, vec![b'x'; 2048]).unwrap();
    assert!(said(&file).contains("no tar archive"), "{}", said(&file));
    fs::write(place.path().join("index.json"), "[]").unwrap();
    assert!(said(place.path()).contains("index.json cannot be understood"));
}

#[test]
fn a_tree_is_kept_once_and_shared_by_all_who_use_it() {
    let layout = Layout::of(&[layer(&[("a", "1")])]);
    let place = tempfile::tempdir().unwrap();
    let (source, image) = found(layout.path(), None).unwrap();
    let (root, held) = kept(&source, &image, place.path()).unwrap();
    fs::write(root.join("mark"), "").unwrap();
    // While the first is in use, as by another arm or another run.
    let (again, shared) = kept(&source, &image, place.path()).unwrap();
    assert!(again == root && again.join("mark").exists());
    drop((held, shared));
    // What a killed process left is no tree.
    fs::rename(&root, root.with_file_name("new")).unwrap();
    let (root, _held) = kept(&source, &image, place.path()).unwrap();
    assert!(root.join("a").exists() && !root.join("mark").exists() && !root.with_file_name("new").exists());
    // A broken one leaves nothing but its lock.
    let broken = Layout::of(&[layer(&[("../x", "1")])]);
    let (source, image) = found(broken.path(), None).unwrap();
    let before = fs::read_dir(place.path()).unwrap().count();
    assert!(kept(&source, &image, place.path()).is_err());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), before + 1);
}
