//! A container image for tests, of one layer and this host's processor.
#![allow(clippy::unwrap_used, reason = "what cannot be made fails the test")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Writes an image layout into `at`: one image with what is in the directory `root`, and these settings.
///
/// # Panics
/// When something cannot be read or written.
pub fn image_layout(at: &Path, root: &Path, settings: &Value) {
    let mut layer = tar::Builder::new(Vec::new());
    layer.follow_symlinks(false);
    layer.append_dir_all(".", root).unwrap();
    let layer = layer.into_inner().unwrap();
    fs::create_dir_all(at.join("blobs/sha256")).unwrap();
    let blob = |kind: &str, bytes: &[u8]| {
        let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(at.join("blobs/sha256").join(&digest), bytes).unwrap();
        json!({"mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{digest}"), "size": bytes.len()})
    };
    let layer = blob("layer.v1.tar", &layer);
    let processor = crate::container::processor();
    let rootfs = json!({"type": "layers", "diff_ids": [layer["digest"]]});
    let config = json!({"architecture": processor, "os": "linux", "config": settings, "rootfs": rootfs});
    let config = blob("config.v1+json", config.to_string().as_bytes());
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    let manifest = blob("manifest.v1+json", manifest.to_string().as_bytes());
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(at.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
    fs::write(at.join("index.json"), index.to_string()).unwrap();
}
