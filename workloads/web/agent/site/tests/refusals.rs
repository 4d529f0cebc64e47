//! Sites that cannot be, and what is said of them.

use super::*;

/// The message about the small site after a change.
fn message_after(change: impl FnOnce(&mut WebDrive)) -> String {
    let mut drive = drive(all_kinds());
    change(&mut drive);
    Site::compile(&drive).map(|_| ()).unwrap_err().to_string()
}

fn refused(what: &str, change: impl FnOnce(&mut WebDrive)) {
    let message = message_after(change);
    assert!(message.contains(what) && message.contains("correct the tables of the site"), "{message}");
}

#[test]
fn probabilities_that_cannot_be_are_refused() {
    refused("probability -0.1 in list", |drive| drive.site.states[0].next[0].1 = -0.1);
    refused("probability NaN in list", |drive| drive.site.states[0].next[0].1 = f64::NAN);
    refused("in list that add up to 1.2", |drive| drive.site.states[0].next[0].1 = 0.7);
    refused("probability 1.5 in list", |drive| drive.site.states[0].embedded[0].unchanged = 1.5);
    refused("first requests whose probabilities add up to 0.5", |drive| drive.site.entry[0].1 = 0.5);
    refused("first requests", |drive| drive.site.entry.clear());
    refused("classes of downloads that add up to", |drive| {
        drive.site.files.downloads.as_mut().unwrap().classes[0].share = 0.1;
    });
    refused("a class of downloads", |drive| drive.site.files.downloads.as_mut().unwrap().classes[0].within.clear());
}

#[test]
fn what_there_is_not_is_refused() {
    refused("from list to state 6", |drive| drive.site.states[0].next[0].0 = 6);
    refused("from entry to state 9", |drive| drive.site.entry = vec![(9, 1.0)]);
    refused("counts list as request type 2", |drive| drive.site.states[0].counted_as = 2);
    refused("two states named \"list\"", |drive| drive.site.states[1].name = "list".to_owned());
    refused("0 states", |drive| drive.site.states.clear());
    refused("nothing to choose from", |drive| drive.site.files.checks = None);
    refused("nothing to choose from", |drive| drive.site.files.products = None);
    refused("no images of products of class 1", |drive| {
        drive.site.files.products.as_mut().unwrap().classes.truncate(1);
    });
    refused("no downloads, but download is one", |drive| drive.site.files.downloads = None);
    refused("no byte rates", |drive| drive.site.downloads = None);
    refused("0 users with 10 checks", |drive| drive.site.files.checks.as_mut().unwrap().users = 0);
    refused("directories of 11 products", |drive| drive.site.files.products.as_mut().unwrap().items = 11);
    refused("100001 directories", |drive| drive.site.files.downloads.as_mut().unwrap().directories = 100_001);
    refused("0 directories", |drive| drive.site.files.products.as_mut().unwrap().directories = 0);
}

#[test]
fn what_cannot_stand_in_an_address_is_refused() {
    refused("\"a b\" as the name of its host", |drive| drive.host = "a b".to_owned());
    refused("\"\" as name", |drive| drive.site.name.clear());
    refused("\"li/st\" as a page", |drive| drive.site.states[0].name = "li/st".to_owned());
    refused("no path of an address", |drive| drive.site.states[0].embedded[0] = fixed("x.gif", 1, 0.0));
    refused("no path of an address", |drive| drive.site.states[0].embedded[0] = fixed("/x y.gif", 1, 0.0));
}

#[test]
fn objectives_that_contradict_themselves_are_refused() {
    refused("finds good what it does not find tolerable", |drive| drive.site.pages.good_ns = 5 * SECOND);
    refused("byte rates of downloads", |drive| drive.site.downloads = Some((1.0, 2.0)));
}
