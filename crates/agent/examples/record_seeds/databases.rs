//! Databases that are filled, counted and emptied again.

use tare_driver::social::spec::{Scale, SocialLoad};
use tare_driver::store::spec::{StoreCount, StoreLoad, StoreSize};
use tare_model::sql::{SqlServer, SqlSpec};
use tare_wire::Link;

use super::{Result, TIMEOUT, perform};

pub fn databases(link: &Link, server: &SqlServer) -> Result<()> {
    let sql = |statements: &[&str]| {
        let statements = statements.iter().map(|sql| (*sql).to_owned()).collect();
        let spec = SqlSpec { server: server.clone(), statements, timeout_ns: TIMEOUT.as_nanos() as u64 };
        perform(link, &spec)
    };
    sql(&["CREATE SCHEMA seeds", "SELECT 1 AS one, NULL AS nothing"])?;
    let server = || SqlServer { schema: Some("seeds".to_owned()), ..server.clone() };
    let size = StoreSize { customers: 20, orders_per_month: 2, products: 10 };
    let timeout_ns = TIMEOUT.as_nanos() as u64;
    perform(link, &StoreLoad { server: server(), size, seed: 1, connections: 2 })?;
    let count = StoreCount { server: server(), after_order: 20, in_doubt: vec![22], timeout_ns };
    perform(link, &count)?;
    let load =
        SocialLoad { server: server(), scale: Scale { people: 101, tags: 3, events: 2 }, seed: 1, connections: 2 };
    perform(link, &load)?;
    // It is there already.
    perform(link, &load)?;
    sql(&["DROP SCHEMA seeds CASCADE"])?;
    Ok(())
}
