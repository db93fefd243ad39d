//! The owner's tools on real files and processes.

#[cfg(test)]
mod bash;
#[cfg(test)]
mod confinement;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod files;
#[cfg(test)]
mod room;
#[cfg(test)]
mod send;
