//! Load drivers: load models, schedules, clients and servers of raw sockets, histograms.
