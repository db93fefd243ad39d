//! Faults of machines, agents and providers, drawn anew with every run: `VOLCANIC_FAULTS_SEED` draws the same again, and
//! `VOLCANIC_FAULTS_TIMES` tries more of them.

mod power;
mod restoring;
mod unheard;
