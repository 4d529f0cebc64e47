//! What of a machine's memory on the host can be merged or given back, and who says that it is.

use serde_json::Value;
use tare_model::Refusal;
use tare_model::field::FieldError;

/// Merging is no option of a platform: it shows the memory of guests to one another, and so it is written on an arm, in a
/// study that says to whom all of it belongs.
///
/// # Errors
/// When it is written among the platform's options all the same.
pub(crate) fn refuse_merge_option(options: &Value) -> Result<(), FieldError> {
    if options.pointer("/memory/merge").is_none() {
        return Ok(());
    }
    let why = "whether memory is merged is the arm's to say, in a study with a `trust-domain`, and not its platform's";
    let help =
        "leave `merge` out, and where memory is to be merged write merging = \"tare\", or another rule, on the arm";
    Err(FieldError::new(&["memory", "merge"], why).help(help))
}

/// How a machine's memory lies on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lies {
    /// Shared with a file server, as the image that is the host's own root needs it.
    pub shared: bool,
    /// In huge pages that the host has set apart.
    pub huge_pages: bool,
    /// Reached by a device that is passed through.
    pub passed_through: bool,
}

impl Lies {
    /// Why a balloon cannot give it back, and the remedy.
    pub(crate) fn ballooning_refusal(self) -> Option<Refusal> {
        let refusal = |why: &str, remedy: &str| Some(Refusal::new(why, remedy));
        if self.huge_pages {
            let why = "memory in huge pages that the host has set apart stays set apart, whatever a balloon gives back";
            return refusal(why, "leave `huge-pages` out of the arm's `memory`, or `ballooning`");
        }
        if self.passed_through {
            let why = "a device that is passed through keeps all of the guest's memory where it is";
            return refusal(why, "leave the passed-through card out, or `ballooning`");
        }
        None
    }

    /// Why the kernel never merges it, and the remedy.
    pub(crate) fn merging_refusal(self) -> Option<Refusal> {
        let refusal = |why: &str, remedy: &str| Some(Refusal::new(why, remedy));
        if self.shared {
            let remedy = "boot an image with a disk: `image = { debian = {} }`, built by `tare image build debian`";
            return refusal(
                "the image `host` needs memory that is shared with a file server, which is never merged",
                remedy,
            );
        }
        if self.huge_pages {
            let remedy = "leave `huge-pages` out of the arm's `memory`";
            return refusal("memory in huge pages that the host has set apart is never merged", remedy);
        }
        if self.passed_through {
            let remedy = "leave the passed-through card out, or `merging`";
            return refusal(
                "a device that is passed through keeps all of the guest's memory where it is, unmerged",
                remedy,
            );
        }
        None
    }
}
