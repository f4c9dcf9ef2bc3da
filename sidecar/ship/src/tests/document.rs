//! The document that explains every table, view and column: the store's comments are made of it, and nothing is
//! missing in it.

use std::collections::BTreeSet;
use std::path::Path;

use ledger::column::{Column, Sql};

use super::server::shared;
use crate::{columns, schema};

const DOCUMENT: &str = include_str!("../../postgres.md");

/// A table or a view, as the document explains it.
#[derive(Default)]
struct Relation {
    kind: &'static str,
    name: String,
    about: Vec<String>,
    /// Names of columns, and what they are.
    columns: Vec<(Vec<String>, String)>,
}

fn relations() -> Vec<Relation> {
    let mut all: Vec<Relation> = Vec::new();
    let mut is_within = false;
    for line in DOCUMENT.lines() {
        let begun = [("TABLE", "### Table `"), ("VIEW", "### View `")]
            .iter()
            .find_map(|(kind, mark)| Some((*kind, line.strip_prefix(mark)?)));
        if let Some((kind, name)) = begun {
            all.push(Relation { kind, name: name.trim_end_matches('`').to_owned(), ..Relation::default() });
            is_within = true;
        } else if line.starts_with("##") {
            is_within = false;
        } else if let (true, Some(relation)) = (is_within, all.last_mut()) {
            if let Some((names, about)) = line.strip_prefix("| `").and_then(|rest| rest.split_once(" | ")) {
                let names = names.split('`').step_by(2).filter(|name| !name.is_empty());
                let about = about.trim_end_matches('|').trim().to_owned();
                relation.columns.push((names.map(str::to_owned).collect(), about));
            } else if !line.is_empty() && !line.starts_with('|') {
                relation.about.push(line.to_owned());
            }
        }
    }
    all
}

/// The comment of each relation and each column in the store.
fn comments() -> String {
    let mut sql = String::from(
        "-- The comments on tables, views and columns, made of sidecar/ship/postgres.md by the tests \
         (UPDATE_GOLDEN=1). Applied last.\n",
    );
    let mut comment = |on: &str, about: &str| {
        sql.push_str(&format!("COMMENT ON {on} IS '{}';\n", about.replace('\'', "''")));
    };
    for Relation { kind, name, about, columns } in relations() {
        comment(&format!("{kind} tokenmeter.{name}"), &about.join(" "));
        for (names, about) in columns {
            let together = if names.len() > 1 { format!("{}: {about}", names.join(", ")) } else { about };
            for column in names {
                comment(&format!("COLUMN tokenmeter.{name}.{column}"), &together);
            }
        }
    }
    sql
}

/// The type of a column in the store.
fn sql_type<T>(column: &Column<T>) -> &'static str {
    match column.sql {
        Sql::Time => "timestamptz",
        Sql::Day => "date",
        Sql::Integer => "bigint",
        Sql::Small => "integer",
        Sql::Flag => "boolean",
        Sql::Text => "text",
        Sql::Id => "uuid",
        Sql::Sum(_) => "numeric",
    }
}

/// The statements that add the columns of exchanges that came after the last version's tables.
fn later_columns() -> String {
    let add = |column| {
        let (name, kind) = (columns::name(column), sql_type(column));
        format!("ALTER TABLE tokenmeter.exchange ADD COLUMN IF NOT EXISTS {name} {kind};\n")
    };
    schema::COLUMNS
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("--"))
        .map(str::to_owned)
        .chain(schema::later_columns().map(add))
        .collect()
}

/// The views, with those columns in `exchanges`.
fn views() -> String {
    let mark = "  -- Later columns, made of sidecar/ledger/src/columns.rs by the tests (UPDATE_GOLDEN=1).\n";
    let (before, after) = schema::VIEWS.split_once(mark).unwrap();
    let after = &after[after.find("FROM").unwrap()..];
    let later: String = schema::later_columns()
        .map(|column| format!("  , exchange.{0} AS {0}\n", columns::name(column)))
        .collect();
    format!("{before}{mark}{later}{after}")
}

#[test]
#[ignore = "needs PostgreSQL"]
fn generated_statements_are_those_of_document_and_columns() {
    let files = [
        ("comments.sql", schema::COMMENTS, comments()),
        ("columns.sql", schema::COLUMNS, later_columns()),
        ("views.sql", schema::VIEWS, views()),
    ];
    for (name, is, expected) in files {
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema").join(name);
            std::fs::write(path, expected).unwrap();
        } else {
            assert!(is == expected, "{name} differs: run this test with UPDATE_GOLDEN=1");
        }
    }
}

/// Every column of every table and view is explained, and nothing is that is not there.
#[test]
#[ignore = "needs PostgreSQL"]
fn document_names_every_column() {
    let database = shared().database();
    let mut client = shared().client(&database).unwrap();
    schema::ensure(&mut client).unwrap();
    let sql = "SELECT CASE table_type WHEN 'VIEW' THEN 'VIEW ' ELSE 'TABLE ' END || table_name || '.' || column_name \
               FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
               WHERE table_schema = 'tokenmeter'";
    let there: BTreeSet<String> = client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    let explained: BTreeSet<String> = relations()
        .iter()
        .flat_map(|Relation { kind, name, columns, .. }| {
            let names = columns.iter().flat_map(|(names, _)| names);
            names.map(move |column| format!("{kind} {name}.{column}"))
        })
        .collect();
    assert_eq!(there.difference(&explained).collect::<Vec<_>>(), Vec::<&String>::new(), "not explained");
    assert_eq!(explained.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "not there");
    let sql = "SELECT count(*)::int FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
               WHERE c.relnamespace = 'tokenmeter'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 \
               AND NOT a.attisdropped AND coalesce(col_description(c.oid, a.attnum), '') = ''";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i32>(0), 0, "columns without a comment");
    let sql = "SELECT count(*)::int FROM pg_class c WHERE c.relnamespace = 'tokenmeter'::regnamespace \
               AND c.relkind IN ('r', 'p', 'v') AND coalesce(obj_description(c.oid, 'pg_class'), '') = ''";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i32>(0), 0, "tables without a comment");
}
