//! All libraries that the workspace uses, with all features that any of its crates asks for. It has no code.
//!
//! Cargo compiles a library anew for each set of its features. The tests of one crate would need other features than those of
//! the whole workspace, and so other libraries, almost all of them. Each crate has this one as a dev-dependency: its tests then
//! use the libraries that are compiled already. Programs that are not tests do not use it.

use bytes as _;
use bytesize as _;
use cargo_metadata as _;
use clap as _;
use clap_complete as _;
use clap_mangen as _;
use cpio as _;
use csv as _;
use elf as _;
use fatfs as _;
use flate2 as _;
use futures_util as _;
use hdrhistogram as _;
use hmac as _;
use httparse as _;
use indicatif as _;
use insta as _;
use jiff as _;
use jsonschema as _;
use libc as _;
use libloading as _;
use lzma_rust2 as _;
use memchr as _;
use miette as _;
use minijinja as _;
use oci_spec as _;
use parquet as _;
use postcard as _;
use postgres_protocol as _;
use proc_macro2 as _;
use procfs as _;
use proptest as _;
use qapi as _;
use quick_xml as _;
use rand as _;
use rand_distr as _;
use rcgen as _;
use regex as _;
use roxmltree as _;
use rtnetlink as _;
use rusqlite as _;
use rustix as _;
use rustls as _;
use ruzstd as _;
use schemars as _;
use serde as _;
use serde_json as _;
use serde_json_path as _;
use serde_path_to_error as _;
use sha2 as _;
use signal_hook as _;
use statrs as _;
use strsim as _;
use tar as _;
use tempfile as _;
use thiserror as _;
use tokio as _;
use toml as _;
use tracing as _;
use tracing_subscriber as _;
