//! Small programs for those who add the crates to their own projects.
