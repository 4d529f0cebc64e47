//! The lab on a host: namespaces, links, cgroups, overlays, CPU sets, and how each is reaped.
