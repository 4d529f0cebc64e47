//! Container images as roots: what a study writes of one, and what is found of it.

use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tare_image::{ContainerImage, ImageError, Unpacked, container_look, container_unpacked};
use tare_model::guest::CommandDefaults;

use super::leads_out;

/// A container image of the user's: a text with its path, or path and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ImageSource {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// A container image: an image layout (a directory), an archive of one, or what `docker save` or `podman save` writes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    /// Where it is.
    path: PathBuf,
    /// Which one, by its name or its digest, where there are several.
    #[serde(default)]
    name: Option<String>,
}

impl<'de> Deserialize<'de> for ImageSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ImageSource;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("the path of a container image, or { path = \"..\", name = \"..\" }")
            }

            fn visit_str<E>(self, path: &str) -> Result<ImageSource, E> {
                Ok(ImageSource { path: path.into(), name: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ImageSource, A::Error> {
                let Written { path, name } = Written::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ImageSource { path, name })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for ImageSource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ImageSource".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let written = generator.subschema_for::<Written>();
        schemars::json_schema!({
            "description": "A container image: its path, or path and name.",
            "anyOf": [{"type": "string"}, written],
        })
    }
}

impl ImageSource {
    /// Looks at it, as far as nothing is unpacked.
    ///
    /// # Errors
    /// When it cannot be used here.
    pub(crate) fn look(&self) -> Result<ContainerImage, ImageError> {
        container_look(&self.path, self.name.as_deref())
    }

    /// Its tree, unpacked once by its content.
    ///
    /// # Errors
    /// When it cannot be used here, or is not what its digests say.
    pub(crate) fn unpacked(&self) -> Result<Unpacked, ImageError> {
        let unpacked = container_unpacked(&self.path, self.name.as_deref())?;
        let Some(why) = leads_out(&unpacked.root) else { return Ok(unpacked) };
        let tried = format!("use the container image {} as a root", self.path.display());
        Err(ImageError { tried, why: format!("it {why}"), remedy: "Make the image without that link".into() })
    }

    /// What a reader must know about it, as the beginning of a sentence.
    pub(crate) fn disclosure(&self) -> String {
        let image = match self.look() {
            Ok(image) => image,
            Err(error) => return format!("The guest's root is the container image {} ({error})", self.path.display()),
        };
        // As engines shorten them.
        let short = |digest: &str| digest.trim_start_matches("sha256:").chars().take(12).collect::<String>();
        let layers: Vec<String> = image.layers().map(short).collect();
        let name = image.name.as_ref().map(|name| format!("`{name}`, ")).unwrap_or_default();
        let layers = match layers.len() {
            0 => "no layers".to_owned(),
            1 => format!("1 layer ({})", layers[0]),
            many => format!("{many} layers ({})", layers.join(", ")),
        };
        format!("The guest's root is the container image {} ({name}{}, {layers})", self.path.display(), image.digest)
    }
}

/// What of an image's settings holds: for a user's commands, and nothing else.
pub(crate) const SETTINGS: &str = "Of the image's settings its environment and its working directory hold, for commands of the study's; its entry \
     point, its user, its ports and its volumes do not: what runs is root, as on every arm.";

/// The image's settings for commands.
pub(crate) fn defaults(image: &ContainerImage) -> CommandDefaults {
    CommandDefaults { env: image.env.clone(), directory: image.directory.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_image_is_a_path_or_a_path_with_a_name() {
        let read = |value| serde_json::from_value::<ImageSource>(value).map_err(|error| error.to_string());
        let plain = read(json!("app.tar")).unwrap();
        assert_eq!(plain, ImageSource { path: "app.tar".into(), name: None });
        assert_eq!(read(json!({"path": "app.tar"})).unwrap(), plain);
        let named = read(json!({"path": "app.tar", "name": "app:1"})).unwrap();
        assert_eq!(named.name.as_deref(), Some("app:1"));
        assert_eq!(read(serde_json::to_value(&named).unwrap()).unwrap(), named);
        assert!(read(json!({"path": "x", "tag": "1"})).unwrap_err().contains("unknown field `tag`"));
        assert!(read(json!({})).unwrap_err().contains("missing field `path`"));
        assert!(read(json!(7)).unwrap_err().contains("the path of a container image"));
    }

    #[test]
    fn an_image_that_is_not_there_is_disclosed_as_such() {
        let gone = ImageSource { path: "/no/image".into(), name: None };
        assert!(gone.look().is_err() && gone.disclosure().contains("not there"), "{}", gone.disclosure());
    }
}
