#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::web::spec::{Body, Embedded, FileRef, SiteModel, WebDrive};
use tare_driver::web::{Simulated, simulate};

use super::*;
use crate::web::tables::Site;
use tare_model::packed::Packed;

/// Bytes of the head of a response, for each file and page: servers send 200 to 300.
const HEAD: f64 = 250.0;

/// The published runs: environment, workload, sessions, iteration, type, requests, ..., bytes a request.
const PUBLISHED: &str = include_str!("../../../../crates/import/published/002-web-iterations.csv");

fn model(site: Site) -> SiteModel {
    let tables = site.tables().unwrap();
    compile(&tables, file_set(&tables.files, None, 10))
}

/// What the published run has for a request type, bytes.
fn published(site: &str, environment: &str, name: &str) -> f64 {
    let (mut requests, mut bytes) = (0.0, 0.0);
    for line in PUBLISHED.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if [cells[0], cells[1], cells[4]] == [environment, site, name] {
            let number: f64 = cells[5].parse().unwrap();
            requests += number;
            bytes += number * cells[11].parse::<f64>().unwrap();
        }
    }
    assert!(requests > 0.0, "{site} {environment} {name}");
    bytes / requests
}

/// Length of a file, mean over the files that it may be.
fn bytes(model: &SiteModel, file: &FileRef) -> f64 {
    let mean = |(base, step): (u64, u64), items: u32| base as f64 + step as f64 * f64::from(items - 1) / 2.0;
    match file {
        FileRef::Fixed { bytes, .. } => *bytes as f64,
        FileRef::Check { front } => {
            let checks = model.files.checks.as_ref().unwrap();
            mean(if *front { checks.front } else { checks.back }, checks.checks)
        }
        FileRef::Product { class } => {
            let products = model.files.products.as_ref().unwrap();
            mean(products.classes[usize::from(*class)], products.items)
        }
    }
}

/// Bytes of a request with all its files, once what users have already is counted, or in full.
fn expected(model: &SiteModel, state: &SiteState, full: bool) -> f64 {
    let body = match &state.body {
        Body::Page { padding, .. } => *padding as f64,
        Body::File(file) => bytes(model, file),
        Body::Download => {
            let classes = &model.files.downloads.as_ref().unwrap().classes;
            let of = |class: &DownloadClass| {
                let sizes = class.within.iter().enumerate();
                let sizes = sizes.map(|(i, share)| share * (class.size.0 + class.size.1 * i as u64) as f64);
                class.share * sizes.sum::<f64>()
            };
            classes.iter().map(of).sum()
        }
    };
    let come =
        |embedded: &Embedded| HEAD + bytes(model, &embedded.file) * if full { 1.0 } else { 1.0 - embedded.unchanged };
    HEAD + body + state.embedded.iter().map(come).sum::<f64>()
}

/// Bytes a request of a type; its states are taken to be equally frequent.
fn of_type(model: &SiteModel, name: &str, full: bool) -> f64 {
    let index = model.types.iter().position(|known| known == name).unwrap();
    let states: Vec<&SiteState> = model.states.iter().filter(|state| usize::from(state.counted_as) == index).collect();
    states.iter().map(|state| expected(model, state, full)).sum::<f64>() / states.len() as f64
}

#[track_caller]
fn close(what: &str, ours: f64, published: f64) {
    let off = (ours / published - 1.0).abs();
    assert!(off < 0.03, "{what}: {ours:.0} bytes, published {published:.0}: {:.1} % off", off * 100.0);
}

#[test]
fn bytes_a_request_are_those_of_the_published_runs() {
    for site in [Site::Ecommerce, Site::Support] {
        let model = model(site);
        for name in &model.types {
            close(name, of_type(&model, name, false), published(site.name(), "native", name));
        }
    }
}

#[test]
fn the_published_banking_runs_differ_by_what_their_clients_had_already() {
    let model = model(Site::Banking);
    for name in &model.types {
        close(&format!("{name}, all of it"), of_type(&model, name, true), published("banking", "native", name));
        close(&format!("{name}, expected"), of_type(&model, name, false), published("banking", "virtual", name));
    }
    let mix =
        |full| model.states.iter().map(|state| state.target.unwrap() * expected(&model, state, full)).sum::<f64>();
    let (full, partly): (f64, f64) = (mix(true), mix(false));
    close("all types, all of it", full, published("banking", "native", "Total"));
    close("all types, expected", partly, published("banking", "virtual", "Total"));
    assert!(full / partly > 1.15, "{full} and {partly} cannot be compared");
}

#[test]
fn exactly_the_expected_bytes_come() {
    for site in [Site::Banking, Site::Ecommerce, Site::Support] {
        let (tables, model) = (site.tables().unwrap(), model(site));
        for (table, state) in tables.states.iter().zip(&model.states) {
            let Some(images) = table.images else { continue };
            let fixed: Vec<(u64, f64)> = state
                .embedded
                .iter()
                .filter_map(|one| match one.file {
                    FileRef::Fixed { bytes, .. } => Some((bytes, one.unchanged)),
                    _ => None,
                })
                .collect();
            assert_eq!(fixed.len(), images.files as usize);
            assert_eq!(fixed.iter().map(|(bytes, _)| bytes).sum::<u64>(), images.full, "{}", state.name);
            let come: f64 = fixed.iter().map(|(bytes, kept)| *bytes as f64 * (1.0 - kept)).sum();
            assert!((come - images.expected as f64).abs() < 1e-6, "{}: {come}", state.name);
            let (least, most) = (fixed.first().unwrap().1, fixed.last().unwrap().1);
            assert!(least >= 0.0 && most <= 1.0 && most - least <= 2.0 * tables.image_spread + 1e-9, "{}", state.name);
            let lengths = fixed.iter().map(|(bytes, _)| *bytes);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
    }
}

fn walked(site: Site) -> (SiteModel, Simulated) {
    let model = model(site);
    let drive = WebDrive {
        site: model.clone(),
        tls: None,
        host: "198.18.0.2".into(),
        connections: 2,
        fresh_connections: true,
        receive_bytes_per_s: None,
        salt: 1,
        check: true,
        timeout_ns: 1_000_000_000,
        overrun_ns: 1_000_000_000,
        threads: 1,
    };
    // The driver's own, as it comes over the wire.
    let drive = Packed::of(&drive).unwrap().unpack().unwrap();
    let seen = simulate(&drive, 200_000, 7).unwrap();
    (model, seen)
}

/// The thinks are shares of all requests, by the spec of the workload. Support: a user thinks before all but the first of a
/// session, and a session has 14.8 requests.
#[test]
fn the_mix_is_the_target_and_users_think_as_often_as_published() {
    for (site, thinks, a_session) in
        [(Site::Banking, 0.6158, 4.645), (Site::Ecommerce, 0.9194, 12.4), (Site::Support, 1.0 - 1.0 / 14.8, 14.8)]
    {
        let (model, seen) = walked(site);
        for (index, state) in model.states.iter().enumerate() {
            let (share, target) = (seen.share(index), state.target.unwrap());
            let off = (share - target).abs();
            assert!(off < 0.001, "{}: {share:.4} of requests, target {target:.4}", state.name);
        }
        assert!((seen.thinking_share() - thinks).abs() < 0.002, "{site:?}: {}", seen.thinking_share());
        let requests = seen.requests() as f64 / seen.sessions as f64;
        assert!((requests - a_session).abs() < 0.1, "{site:?}: {requests} requests a session");
        let mean_s = seen.think_ns as f64 / seen.thinks as f64 / 1e9;
        let asked = model.think.mean_ns as f64 / 1e9;
        assert!((mean_s / asked - 1.0).abs() < 0.01, "{site:?}: users think {mean_s} s, {asked} were asked");
    }
}

#[test]
fn targets_add_up_and_check_images_are_one_type() {
    for site in [Site::Banking, Site::Ecommerce, Site::Support] {
        let targets: f64 = model(site).states.iter().map(|state| state.target.unwrap()).sum();
        assert!((targets - 1.0).abs() < 1e-4, "{site:?}: {targets}");
    }
    let banking = model(Site::Banking);
    assert_eq!((banking.states.len(), banking.types.len()), (17, 16));
    let image = banking.types.iter().position(|name| name == "check_image").unwrap();
    assert_eq!(banking.states.iter().filter(|state| usize::from(state.counted_as) == image).count(), 2);
    assert!(banking.states.iter().all(|state| state.secure));
    let ecommerce = model(Site::Ecommerce);
    let secure: Vec<&str> = ecommerce.states.iter().filter(|state| state.secure).map(|state| &*state.name).collect();
    assert_eq!(secure, ["login", "shipping", "billing", "confirm"]);
    assert!(model(Site::Support).states.iter().all(|state| !state.secure));
}

#[test]
fn the_pages_of_the_server_are_those_of_the_driver() {
    for site in [Site::Banking, Site::Ecommerce, Site::Support] {
        let (tables, model) = (site.tables().unwrap(), model(site));
        let text = pages(&tables);
        let mut lines = text.lines();
        for state in &model.states {
            let Body::Page { title, command, parameters, padding } = &state.body else { continue };
            let fields: Vec<&str> = lines.next().unwrap().split('\t').collect();
            assert_eq!(fields.len(), 8);
            let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
            let expected = [site.name(), &*state.name, &**title, &command.to_string(), &padding.to_string()];
            assert_eq!(fields[..5], expected);
            assert!(["login", "logout", "member", "open"].contains(&fields[5]));
            assert_eq!((fields[6], fields[7].split(',').count()), (&*names.join(","), state.embedded.len()));
        }
        assert_eq!(lines.next(), None);
    }
    let shop = pages(&Site::Ecommerce.tables().unwrap());
    assert!(shop.contains(",/files/ecommerce/products/{product-directory}/{product-item}-b.jpg\n"), "{shop}");
}

#[test]
fn file_sets_grow_with_sessions_and_never_vanish() {
    let banking = Site::Banking.tables().unwrap().files;
    assert_eq!(file_set(&banking, None, 2300).checks.unwrap().users, 115_000);
    assert_eq!(file_set(&banking, Some(0.01), 3).checks.unwrap().users, 1);
    let support = Site::Support.tables().unwrap().files;
    assert_eq!(file_set(&support, None, 2200).downloads.unwrap().directories, 550);
    let shop = Site::Ecommerce.tables().unwrap().files;
    assert_eq!(file_set(&shop, Some(1e6), 100).products.unwrap().directories, DIRECTORIES_MAX);
}

/// Tables of the user's own, made of those of a site with something replaced.
fn own(site: Site, from: &str, to: &str) -> Result<Tables, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let shipped = match site {
        Site::Banking => include_str!("../sites/banking.toml"),
        Site::Ecommerce => include_str!("../sites/ecommerce.toml"),
        Site::Support => include_str!("../sites/support.toml"),
    };
    assert!(shipped.contains(from), "{from}");
    std::fs::write(&path, shipped.replacen(from, to, 1)).unwrap();
    site.tables_from(path.to_str()).map_err(|error| {
        assert_eq!(error.path, ["tables"]);
        assert!(error.message.contains("own.toml"), "{error}");
        error.message
    })
}

#[test]
fn tables_of_the_users_own_are_taken_and_what_is_wrong_with_them_is_reported_by_its_field() {
    let hasty = own(Site::Banking, "mean = \"10s\"", "mean = \"100ms\"").unwrap();
    assert_eq!(hasty.think.mean.ns, 100_000_000);
    let banking = [
        ("name = \"banking\"", "name = \"bank\"", "name: `bank` is not `banking`"),
        ("mean = \"10s\"", "mean = \"ten\"", "line "),
        ("granularity", "grain", "granularity"),
        ("entry = { login = 1.0 }", "entry = { login = 0.9 }", "entry: the probabilities add up to 0.9"),
        ("image_front = 1.0", "image_side = 1.0", "states.check_detail_html.next.image_side: there is no such"),
        ("account_summary = 0.32", "account_summary = 0.62", "states.login.next: the probabilities add up to 1.1"),
        ("command = 15", "command = 99", "states.logout.command"),
        ("\"check\", \"token\"", "\"token\", \"check\"", "states.check_detail_html.parameters: the last"),
        ("expected = 27107", "expected = 52107", "states.login.images.expected"),
        ("title = \"Bank: welcome\"", "title = \"<b>\"", "states.login.title"),
        ("file = \"check-back\"", "file = \"download\"", "states.image_back.file: there are no downloads"),
        ("good = \"2s\"", "good = \"5s\"", "pages.tolerable"),
    ];
    let ecommerce = [
        ("products = [\"b\"]", "products = [\"d\"]", "states.productdetail.products: `d`"),
        ("target = 13.0834", "target = 113.0", "states.index.target"),
    ];
    let support = [
        ("share = 0.1366", "share = 0.2366", "files.downloads.classes: the shares add up to 1.1"),
        ("within = [0.667", "within = [0.767", "files.downloads.classes.3.within"),
    ];
    let all = [(Site::Banking, &banking[..]), (Site::Ecommerce, &ecommerce), (Site::Support, &support)];
    for (site, (from, to, words)) in all.into_iter().flat_map(|(site, rows)| rows.iter().map(move |row| (site, row))) {
        let error = own(site, from, to).unwrap_err();
        assert!(error.contains(words), "{from} -> {to}: {error}");
    }
    let missing = Site::Banking.tables_from(Some("/no/such.toml")).unwrap_err();
    assert!(missing.message.contains("/no/such.toml") && missing.help.is_some(), "{missing}");
}
