//! Databases that are filled, counted and emptied again.

use tare_model::social::{Scale, SocialLoad};
use tare_model::sql::{SqlServer, SqlSpec};
use tare_model::store::{StoreCount, StoreLoad, StoreSize};
use tare_wire::{Link, Request};

use super::{Result, TIMEOUT, ask};

pub fn databases(link: &Link, server: &SqlServer) -> Result<()> {
    let sql = |statements: &[&str]| {
        let statements = statements.iter().map(|sql| (*sql).to_owned()).collect();
        let spec = SqlSpec { server: server.clone(), statements, timeout_ns: TIMEOUT.as_nanos() as u64 };
        ask(link, Request::Sql(Box::new(spec)))
    };
    sql(&["CREATE SCHEMA seeds", "SELECT 1 AS one, NULL AS nothing"])?;
    let server = || SqlServer { schema: Some("seeds".to_owned()), ..server.clone() };
    let size = StoreSize { customers: 20, orders_per_month: 2, products: 10 };
    let timeout_ns = TIMEOUT.as_nanos() as u64;
    ask(link, Request::StoreLoad(Box::new(StoreLoad { server: server(), size, seed: 1, connections: 2 })))?;
    let count = StoreCount { server: server(), after_order: 20, in_doubt: vec![22], timeout_ns };
    ask(link, Request::StoreCount(Box::new(count)))?;
    let load =
        SocialLoad { server: server(), scale: Scale { people: 101, tags: 3, events: 2 }, seed: 1, connections: 2 };
    ask(link, Request::SocialLoad(Box::new(load.clone())))?;
    // It is there already.
    ask(link, Request::SocialLoad(Box::new(load)))?;
    sql(&["DROP SCHEMA seeds CASCADE"])?;
    Ok(())
}
