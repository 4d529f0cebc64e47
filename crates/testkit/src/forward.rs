//! What platforms and guests of the mocks have in common: a real one behind them does what they do not do otherwise.

/// Methods of [`tare_platform::Platform`] and [`tare_platform::Guest`] that are those of `self.inner`, by name.
macro_rules! forward {
    ($($name:ident),+) => { $($crate::forward::forward! { @ $name })+ };
    (@ look) => {
        fn look(&self, host: &::tare_platform::HostView) -> Result<::tare_platform::Notes, ::tare_model::Refusal> {
            self.inner.look(host)
        }
    };
    (@ disclosures) => {
        fn disclosures(&self) -> Vec<String> {
            self.inner.disclosures()
        }
    };
    (@ comparable) => {
        fn comparable(&self) -> ::tare_platform::Comparable {
            self.inner.comparable()
        }
    };
    (@ versions) => {
        fn versions(&self) -> Vec<(String, String)> {
            self.inner.versions()
        }
    };
    (@ spec) => {
        fn spec(&self) -> &::tare_model::guest::GuestSpec {
            self.inner.spec()
        }
    };
    (@ link) => {
        fn link(&self) -> &::std::sync::Arc<::tare_wire::Link> {
            self.inner.link()
        }
    };
    (@ address) => {
        fn address(&self) -> ::std::net::IpAddr {
            self.inner.address()
        }
    };
    (@ groups) => {
        fn groups(&self) -> Vec<::std::path::PathBuf> {
            self.inner.groups()
        }
    };
    (@ parity) => {
        fn parity(&self) -> Vec<::tare_model::guest::ParityRow> {
            self.inner.parity()
        }
    };
    (@ facts) => {
        fn facts(&self) -> &::tare_wire::AgentFacts {
            self.inner.facts()
        }
    };
    (@ data) => {
        fn data(&self) -> Option<&::tare_model::guest::DataPlace> {
            self.inner.data()
        }
    };
    (@ start_time_s) => {
        fn start_time_s(&self) -> f64 {
            self.inner.start_time_s()
        }
    };
    (@ links) => {
        fn links(&self) -> Vec<::tare_platform::GuestLink> {
            self.inner.links()
        }
    };
    (@ drops) => {
        fn drops(&self) -> Option<u64> {
            self.inner.drops()
        }
    };
    (@ diagnostics) => {
        fn diagnostics(&self) -> String {
            self.inner.diagnostics()
        }
    };
    (@ kill) => {
        fn kill(&mut self) -> Result<(), ::tare_platform::PlatformError> {
            self.inner.kill()
        }
    };
    (@ destroy) => {
        fn destroy(&mut self) -> Result<(), ::tare_platform::PlatformError> {
            self.inner.destroy()
        }
    };
}

pub(crate) use forward;
