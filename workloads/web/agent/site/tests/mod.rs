//! Sites, users, requests and answers together.
mod answers;
mod counts;
mod mix;
mod refusals;
mod requests;
mod speed;

use crate::web::spec::{
    Body, CheckFiles, DownloadClass, DownloadFiles, Embedded, FileRef, FileSet, Parameter, ProductFiles, Quality,
    SiteModel, SiteState, Think, WebDrive,
};

use super::*;

const SALT: u64 = 0xfeed;
const SECOND: u64 = 1_000_000_000;

fn drive(site: SiteModel) -> WebDrive {
    WebDrive {
        site,
        tls: None,
        host: "sut".to_owned(),
        connections: 2,
        fresh_connections: true,
        receive_bytes_per_s: Some(100_000),
        salt: SALT,
        check: true,
        timeout_ns: 60 * SECOND,
        overrun_ns: 20 * SECOND,
        threads: 1,
    }
}

fn page(name: &str, parameters: &[(&str, Parameter)], next: &[(u16, f64)]) -> SiteState {
    SiteState {
        name: name.to_owned(),
        body: Body::Page {
            title: format!("The {name}"),
            command: 4,
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            padding: 5_000,
        },
        thinks: true,
        next: next.to_vec(),
        ..SiteState::default()
    }
}

fn file(name: &str, file: FileRef, next: &[(u16, f64)]) -> SiteState {
    SiteState { name: name.to_owned(), body: Body::File(file), next: next.to_vec(), ..SiteState::default() }
}

fn fixed(path: &str, bytes: u64, unchanged: f64) -> Embedded {
    Embedded { file: FileRef::Fixed { path: path.to_owned(), bytes }, unchanged }
}

/// A small site with everything that there is: a list, a check and its images; a product; a download.
fn all_kinds() -> SiteModel {
    let token = ("token", Parameter::Token);
    let mut list = page("list", &[("user", Parameter::User), token], &[(1, 0.25), (4, 0.25), (5, 0.25)]);
    list.embedded = vec![fixed("/files/shop/images/list/00.gif", 9_000, 0.5), fixed("/files/shop/a.gif", 10, 0.0)];
    let check = page("check", &[("user", Parameter::User), ("check", Parameter::Check), token], &[(2, 1.0)]);
    let mut product =
        page("product", &[("product", Parameter::Product), ("os", Parameter::Choice(7)), token], &[(0, 0.5)]);
    product.embedded = vec![Embedded { file: FileRef::Product { class: 1 }, unchanged: 0.0 }];
    product.secure = true;
    SiteModel {
        name: "shop".to_owned(),
        states: vec![
            list,
            check,
            file("front", FileRef::Check { front: true }, &[(3, 1.0)]),
            file("back", FileRef::Check { front: false }, &[(0, 0.7)]),
            product,
            SiteState { name: "download".to_owned(), body: Body::Download, counted_as: 1, ..SiteState::default() },
        ],
        types: vec!["page".to_owned(), "download".to_owned()],
        entry: vec![(0, 1.0)],
        think: Think { mean_ns: 10 * SECOND, most_ns: 150 * SECOND, step_ns: 2 * SECOND },
        pages: Quality { good_ns: 2 * SECOND, tolerable_ns: 4 * SECOND },
        downloads: Some((99_000.0, 95_000.0)),
        files: FileSet {
            checks: Some(CheckFiles { users: 250, checks: 10, front: (10_757, 511), back: (5_458, 334) }),
            products: Some(ProductFiles { directories: 25, items: 10, classes: vec![(3_521, 1_586), (6_710, 3_590)] }),
            downloads: Some(DownloadFiles {
                directories: 50,
                zipf: 1.2,
                classes: vec![
                    DownloadClass { share: 0.6, size: (104_858, 104_858), within: vec![0.3, 0.7] },
                    DownloadClass { share: 0.4, size: (629_146, 0), within: vec![1.0] },
                ],
            }),
        },
    }
}

/// A user of the small site who has just gone to a state.
fn user_in(site: &Site, state: u16) -> User {
    for session in 0..1_000 {
        let mut user = User::fresh(site, 1, session);
        while let Next::State(now) = user.next(site) {
            if now == state {
                return user;
            }
        }
    }
    panic!("no user came to state {state}");
}
