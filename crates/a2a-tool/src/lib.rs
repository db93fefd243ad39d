//! The a2a tool.
