//! LDA by its promises.
