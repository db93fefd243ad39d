//! Faults of clocks, files and wires, drawn anew with every run: `VOLCANIC_FAULTS_SEED` draws the same again, and
//! `VOLCANIC_FAULTS_TIMES` tries more of them.

mod busy;
mod clocks;
mod editing;
mod pending;
mod racing;
mod slow;
mod streams;
mod tls;
mod wire;
