//! The statements of `schema.sql` and `indexes.sql`, by table.

use tare_model::sql::SqlFailure;

use crate::social::data::Table;

/// Statements that make tables, and those that make their keys and indexes.
#[derive(Debug)]
pub struct Script {
    tables: Vec<(Table, String)>,
    indexes: Vec<(Table, String)>,
}

impl Script {
    /// That of the two files.
    ///
    /// # Errors
    /// A statement that is about no table of ours: a defect of this program.
    pub fn ours() -> Result<Self, SqlFailure> {
        let tables = of(include_str!("../schema.sql"))?;
        Ok(Self { tables, indexes: of(include_str!("../indexes.sql"))? })
    }

    /// The statement that makes a table, without key or index.
    ///
    /// # Errors
    /// There is none: a defect of this program.
    pub fn create(&self, table: Table) -> Result<&str, SqlFailure> {
        let found = self.tables.iter().find(|(of, _)| *of == table).map(|(_, sql)| sql.as_str());
        found.ok_or_else(|| defect("no statement makes the table", table.name()))
    }

    /// The statements that make its keys; each wants the table for itself.
    pub fn keys(&self, table: Table) -> impl Iterator<Item = &str> {
        self.of_table(table).filter(|sql| sql.starts_with("ALTER"))
    }

    /// The statements that make its other indexes; several can be made side by side.
    pub fn indexes(&self, table: Table) -> impl Iterator<Item = &str> {
        self.of_table(table).filter(|sql| !sql.starts_with("ALTER"))
    }

    fn of_table(&self, table: Table) -> impl Iterator<Item = &str> {
        self.indexes.iter().filter(move |(of, _)| *of == table).map(|(_, sql)| sql.as_str())
    }
}

fn defect(what: &str, about: &str) -> SqlFailure {
    let message = format!("{what} ({about}); this is a defect of tare, please report it");
    SqlFailure { sqlstate: None, message }
}

/// The statements of a text with the table that each is about, comments left out: lines that begin with `--`.
fn of(text: &str) -> Result<Vec<(Table, String)>, SqlFailure> {
    let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    let mut statements = Vec::new();
    for sql in code.join("\n").split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
        let words = || sql.split_whitespace();
        let named = |before: &str| words().zip(words().skip(1)).find(|(word, _)| *word == before).map(|(_, name)| name);
        let name = named("ON").or_else(|| named("TABLE"));
        let Some(table) = Table::ALL.into_iter().find(|table| Some(table.name()) == name) else {
            return Err(defect("a statement is about no table of the social database", sql));
        };
        statements.push((table, sql.to_owned()));
    }
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_made_and_has_one_key() {
        let script = Script::ours().unwrap();
        for table in Table::ALL {
            let create = script.create(table).unwrap();
            assert!(create.starts_with(&format!("CREATE TABLE {} (", table.name())), "{create}");
            assert_eq!(script.keys(table).count(), usize::from(true), "{table:?}");
        }
        let indexes: Vec<&str> = Table::ALL.into_iter().flat_map(|table| script.indexes(table)).collect();
        assert_eq!(script.indexes.len(), 10 + indexes.len());
        assert!(indexes.iter().all(|sql| sql.starts_with("CREATE")), "{indexes:?}");
        assert_eq!(script.indexes(Table::Event).count(), 3);
    }

    #[test]
    fn comments_are_left_out_and_strange_tables_reported() {
        let text = "-- one; two\n-- three\nCREATE TABLE id_gen (\n    a integer);\n";
        assert_eq!(of(text).unwrap(), [(Table::IdGen, "CREATE TABLE id_gen (\n    a integer)".to_owned())]);
        assert!(of("DROP TABLE customers;").unwrap_err().message.contains("customers"));
    }
}
