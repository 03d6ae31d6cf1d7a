//! The library's front door: local runs, model directories, the command line.
