//! One remote agent.
