//! What the programs are built of: nothing that is only for tests.

use anyhow::{Result, bail};

use crate::shell::{self, command};

/// The programs that people get.
const SHIPPED: [&str; 2] = ["volcanic-cli", "volcanic-telegram"];

/// The feature with doubles, and with a client that leaves keys in what agents say.
const FOR_TESTS: &str = "test-util";

/// Looks at the features that cargo turns on for the programs. Tests of theirs turn more on, for themselves alone.
pub(crate) fn run() -> Result<()> {
    let mut tree = command("cargo");
    tree.args(["tree", "--locked", "--prefix", "none", "--edges", "no-dev,no-build"]);
    tree.args(["--format", "{p}|{f}"]);
    for package in SHIPPED {
        tree.args(["--package", package]);
    }
    let faults = faults(&shell::output(&mut tree)?);
    if !faults.is_empty() {
        bail!("the programs would be shipped with what is for tests:\n{}", faults.join("\n"));
    }
    println!("shipped: nothing for tests in {}", SHIPPED.join(" and "));
    Ok(())
}

/// Which of our packages stand in the tree with the feature, or are for tests altogether.
fn faults(tree: &str) -> Vec<String> {
    let is_fault = |line: &&str| {
        let (package, features) = line.split_once('|').unwrap_or((line, ""));
        let features = features.trim_end_matches(" (*)");
        package.starts_with("volcanic-testkit ")
            || package.starts_with("volcanic-") && features.split(',').any(|on| on == FOR_TESTS)
    };
    tree.lines().filter(is_fault).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_tests_is_found_and_nothing_else() {
        let tree = "volcanic-cli v0.1.0 (/x)|\nvolcanic-net v0.1.0 (/x)|default (*)\ntokio v1.54.1|net,test-util\n";
        assert_eq!(faults(tree), [""; 0]);
        for line in [
            "volcanic-a2a-client v0.1.0 (/x)|test-util",
            "volcanic-net v0.1.0 (/x)|default,test-util (*)",
            "volcanic-testkit v0.1.0 (/x)|",
        ] {
            assert_eq!(faults(&format!("{tree}{line}\n")), [line]);
        }
    }
}
