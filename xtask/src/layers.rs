//! The layer table: who may use whom. A new edge is a design decision, made here in view of all.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::shell::{command, output};

/// Our crates, and which of ours each may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("a2a-types", &[]),
    ("net", &["base"]),
    ("a2a-client", &["a2a-types", "net", "base"]),
    ("a2a-watch", &["a2a-client", "a2a-types", "net", "base"]),
    ("a2a-server", &["a2a-types", "net", "base"]),
    ("agent-core", &["base"]),
    ("agent-llm", &["agent-core", "base"]),
    ("agent-tools", &["agent-core", "base"]),
    ("a2a-tool", &["agent-core", "a2a-client", "a2a-watch", "a2a-types", "base"]),
    ("store", &["agent-core", "a2a-watch", "a2a-types", "base"]),
    (
        "host",
        &[
            "a2a-client",
            "a2a-watch",
            "a2a-server",
            "a2a-tool",
            "agent-core",
            "agent-llm",
            "net",
            "base",
        ],
    ),
    ("cli", HOST),
    ("telegram", HOST),
];

/// What a host may wire together.
const HOST: &[&str] = &[
    "host",
    "base",
    "a2a-types",
    "net",
    "a2a-client",
    "a2a-watch",
    "a2a-server",
    "agent-core",
    "agent-llm",
    "agent-tools",
    "a2a-tool",
    "store",
];

/// Crates that are there for tests and tasks alone; nothing that ships may use them.
const TEST_ONLY: &[&str] = &["testkit", "e2e", "bench", "xtask"];

/// Outside packages that belong to few crates.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("axum", &["a2a-server", "cli", "telegram"]),
    ("rig-core", &["agent-llm"]),
    ("rig-reqwest", &["agent-llm"]),
    ("teloxide", &["telegram"]),
    ("rusqlite", &["store"]),
    ("hyper-rustls", &["net"]),
    ("reqwest", &[]),
    ("config", &["host"]),
    ("anyhow", &["cli", "telegram"]),
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

pub(crate) fn run() -> Result<()> {
    let text = output(command("cargo").args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--locked",
    ]))?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("failed to read cargo metadata")?;
    let faults = faults(&metadata.packages);
    if !faults.is_empty() {
        bail!("layers (xtask/src/layers.rs):\n  {}", faults.join("\n  "));
    }
    println!("layers: {} packages stand where the table has them", metadata.packages.len());
    Ok(())
}

fn faults(packages: &[Package]) -> Vec<String> {
    let edges: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let outside: BTreeMap<&str, &[&str]> = OUTSIDE.iter().copied().collect();
    let mut faults = Vec::new();
    for package in packages {
        let name = short(&package.name);
        if TEST_ONLY.contains(&name) {
            continue;
        }
        let Some(allowed) = edges.get(name) else {
            faults.push(format!("`{name}` is not in the table"));
            continue;
        };
        let shipped: BTreeSet<&str> = package
            .dependencies
            .iter()
            .filter(|d| d.kind.is_none())
            .map(|d| d.name.as_str())
            .collect();
        for dependency in shipped {
            match dependency.strip_prefix("volcanic-") {
                Some(ours) if !allowed.contains(&ours) => {
                    faults.push(format!("`{name}` may not use `{ours}`"));
                }
                None if outside.get(dependency).is_some_and(|users| !users.contains(&name)) => {
                    faults.push(format!("`{name}` may not use `{dependency}`"));
                }
                Some(_) | None => {}
            }
        }
    }
    faults
}

fn short(name: &str) -> &str {
    name.strip_prefix("volcanic-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
            })
            .collect();
        Package { name: format!("volcanic-{name}"), dependencies }
    }

    #[test]
    fn an_edge_outside_the_table_is_named() {
        let wrong = package(
            "agent-core",
            &[("volcanic-base", None), ("volcanic-a2a-types", None), ("axum", None)],
        );
        assert_eq!(
            faults(&[wrong]),
            ["`agent-core` may not use `axum`", "`agent-core` may not use `a2a-types`"]
        );
    }

    #[test]
    fn a_dev_dependency_is_free() {
        assert_eq!(
            faults(&[package("base", &[("volcanic-testkit", Some("dev"))])]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_unknown_crate_is_named() {
        assert_eq!(faults(&[package("shiny", &[])]), ["`shiny` is not in the table"]);
    }
}
