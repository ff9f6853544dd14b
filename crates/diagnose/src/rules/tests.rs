//! Each rule finds its fault in a small bundle, and not in that of a good bring-up.
