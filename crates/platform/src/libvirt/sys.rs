//! libvirt's C library, loaded when it is first needed, so that the program starts on hosts without it.
//!
//! The calls, with what they return turned into values and typed errors. Handles are counted by libvirt itself and
//! may be used by several threads at once (libvirt, "Threading and the libvirt API"); an error is kept for the thread
//! that made the call, so it is read right after it.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_ulong, c_ulonglong, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

use libloading::Library;

use super::error::LibvirtError;

/// The library's name, as its interface has been numbered since 2008.
const LIBRARY: &str = "libvirt.so.0";
/// `VIR_DOMAIN_START_PAUSED`.
const START_PAUSED: c_uint = 1;
/// `VIR_DOMAIN_START_AUTODESTROY`.
const START_AUTODESTROY: c_uint = 2;
/// `VIR_DOMAIN_AFFECT_LIVE`.
const AFFECT_LIVE: c_uint = 1;
/// `VIR_CRED_*` that might be asked for; they are answered from libvirt's own `auth.conf`, or not at all.
const CREDENTIALS: [c_int; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/// How much of libvirt's CPU maps is set: more CPUs than a host has.
const CPU_MAP_BYTES: usize = 128;

type Result<T> = std::result::Result<T, LibvirtError>;
type Handle = *mut c_void;

/// `virConnectAuth`.
#[repr(C)]
struct Auth {
    kinds: *const c_int,
    count: c_uint,
    ask: unsafe extern "C" fn(Handle, c_uint, Handle) -> c_int,
    data: Handle,
}

/// `virVcpuInfo`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct VcpuInfo {
    number: c_uint,
    state: c_int,
    cpu_time_ns: c_ulonglong,
    cpu: c_int,
}

macro_rules! functions {
    ($($name:ident: $symbol:literal fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions that are used, found once.
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Keeps the code where it is.
            _library: Library,
        }

        impl Api {
            /// # Safety
            /// `library` is libvirt's, so that its symbols have the types declared here.
            unsafe fn of(library: Library) -> std::result::Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: libvirt declares the function with these types, and the pointer is kept no longer
                        // than the library beside it.
                        $name: *unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol)? },
                    )*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    initialize: "virInitialize" fn() -> c_int;
    version: "virGetVersion" fn(*mut c_ulong, *const c_char, *mut c_ulong) -> c_int;
    set_error_func: "virSetErrorFunc" fn(Handle, unsafe extern "C" fn(Handle, Handle)) -> ();
    error_code: "virGetLastErrorCode" fn() -> c_int;
    error_message: "virGetLastErrorMessage" fn() -> *const c_char;
    reset_error: "virResetLastError" fn() -> ();
    open: "virConnectOpenAuth" fn(*const c_char, *const Auth, c_uint) -> Handle;
    close: "virConnectClose" fn(Handle) -> c_int;
    driver: "virConnectGetType" fn(Handle) -> *const c_char;
    daemon_version: "virConnectGetLibVersion" fn(Handle, *mut c_ulong) -> c_int;
    hypervisor_version: "virConnectGetVersion" fn(Handle, *mut c_ulong) -> c_int;
    capabilities: "virConnectGetCapabilities" fn(Handle) -> *mut c_char;
    domain_capabilities: "virConnectGetDomainCapabilities" fn(
        Handle, *const c_char, *const c_char, *const c_char, *const c_char, c_uint) -> *mut c_char;
    define: "virDomainDefineXMLFlags" fn(Handle, *const c_char, c_uint) -> Handle;
    create_xml: "virDomainCreateXML" fn(Handle, *const c_char, c_uint) -> Handle;
    by_name: "virDomainLookupByName" fn(Handle, *const c_char) -> Handle;
    by_uuid: "virDomainLookupByUUIDString" fn(Handle, *const c_char) -> Handle;
    free_domain: "virDomainFree" fn(Handle) -> c_int;
    name: "virDomainGetName" fn(Handle) -> *const c_char;
    uuid: "virDomainGetUUIDString" fn(Handle, *mut c_char) -> c_int;
    create: "virDomainCreateWithFlags" fn(Handle, c_uint) -> c_int;
    resume: "virDomainResume" fn(Handle) -> c_int;
    destroy: "virDomainDestroy" fn(Handle) -> c_int;
    undefine: "virDomainUndefineFlags" fn(Handle, c_uint) -> c_int;
    state: "virDomainGetState" fn(Handle, *mut c_int, *mut c_int, c_uint) -> c_int;
    description: "virDomainGetXMLDesc" fn(Handle, c_uint) -> *mut c_char;
    vcpus: "virDomainGetVcpus" fn(Handle, *mut VcpuInfo, c_int, *mut c_uchar, c_int) -> c_int;
    pin_vcpu: "virDomainPinVcpuFlags" fn(Handle, c_uint, *mut c_uchar, c_int, c_uint) -> c_int;
    snapshot: "virDomainSnapshotLookupByName" fn(Handle, *const c_char, c_uint) -> Handle;
    revert: "virDomainRevertToSnapshot" fn(Handle, c_uint) -> c_int;
    free_snapshot: "virDomainSnapshotFree" fn(Handle) -> c_int;
    open_channel: "virDomainOpenChannel" fn(Handle, *const c_char, Handle, c_uint) -> c_int;
    open_console: "virDomainOpenConsole" fn(Handle, *const c_char, Handle, c_uint) -> c_int;
    new_stream: "virStreamNew" fn(Handle, c_uint) -> Handle;
    send: "virStreamSend" fn(Handle, *const c_char, usize) -> c_int;
    receive: "virStreamRecv" fn(Handle, *mut c_char, usize) -> c_int;
    abort: "virStreamAbort" fn(Handle) -> c_int;
    free_stream: "virStreamFree" fn(Handle) -> c_int;
}

/// Says nothing: errors are returned, and libvirt would print them as well.
unsafe extern "C" fn silent(_: Handle, _: Handle) {}

/// Knows no password and asks nobody.
unsafe extern "C" fn nobody_to_ask(_: Handle, _: c_uint, _: Handle) -> c_int {
    -1
}

/// The library, loaded once; why it could not be.
fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api> {
    super::connection::loads_libraries()?;
    let missing = |error: libloading::Error| LibvirtError::Library { why: error.to_string() };
    // SAFETY: libvirt's start-up code registers tables of its own and nothing else; it stays loaded to the end.
    let library = unsafe { Library::new(LIBRARY) }.map_err(missing)?;
    // SAFETY: a library of this name has libvirt's interface, which has never changed but by additions.
    let api = unsafe { Api::of(library) }.map_err(missing)?;
    // SAFETY: it may be called from any thread, any number of times.
    if unsafe { (api.initialize)() } < 0 {
        return Err(api.error("initialise libvirt"));
    }
    // SAFETY: the handler is a function that lives as long as the program and takes null for its data.
    unsafe { (api.set_error_func)(ptr::null_mut(), silent) };
    Ok(api)
}

impl Api {
    /// The error of this thread's last call.
    fn error(&self, tried: &str) -> LibvirtError {
        // SAFETY: these read and clear what is kept for this thread; the text stays until it is cleared.
        let (code, message) = unsafe {
            let message = (self.error_message)();
            let text =
                if message.is_null() { "no reason given".into() } else { CStr::from_ptr(message).to_string_lossy() };
            let read = ((self.error_code)(), text.into_owned());
            (self.reset_error)();
            read
        };
        LibvirtError::Refused { tried: tried.to_owned(), code, message }
    }

    fn done(&self, result: c_int, tried: &str) -> Result<()> {
        if result < 0 { Err(self.error(tried)) } else { Ok(()) }
    }

    fn handle(&self, handle: Handle, tried: &str) -> Result<Handle> {
        if handle.is_null() { Err(self.error(tried)) } else { Ok(handle) }
    }

    /// A text that the caller must free.
    fn owned_text(&self, text: *mut c_char, tried: &str) -> Result<String> {
        if text.is_null() {
            return Err(self.error(tried));
        }
        // SAFETY: libvirt gives a string of its own making that is ours to free, once.
        unsafe {
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            libc::free(text.cast());
            Ok(owned)
        }
    }
}

fn c_string(text: &str, tried: &str) -> Result<CString> {
    CString::new(text).map_err(|_| LibvirtError::Text { tried: tried.to_owned() })
}

/// Version of the library in this process, in thousands: 9000000 is 9.0.0.
pub(super) fn library_version() -> Result<u64> {
    let api = api()?;
    let mut version = 0;
    // SAFETY: without a driver's name the third argument is not looked at.
    api.done(unsafe { (api.version)(&mut version, ptr::null(), ptr::null_mut()) }, "ask for its version")?;
    Ok(version)
}

/// A connection to a hypervisor.
pub(super) struct Connection {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: libvirt's connections may be used by any thread, and by several at once.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used after this; what was made with it holds a reference of its own.
        unsafe { (self.api.close)(self.handle) };
    }
}

impl Connection {
    /// Connects. Passwords come from libvirt's own `auth.conf`; nobody is asked.
    pub(super) fn open(uri: &str) -> Result<Self> {
        let tried = format!("connect to {uri}");
        let api = api()?;
        let count = CREDENTIALS.len() as c_uint;
        let auth = Auth { kinds: CREDENTIALS.as_ptr(), count, ask: nobody_to_ask, data: ptr::null_mut() };
        let text = c_string(uri, &tried)?;
        // SAFETY: both pointers are good during the call.
        let handle = api.handle(unsafe { (api.open)(text.as_ptr(), &auth, 0) }, &tried)?;
        Ok(Self { api, handle })
    }

    /// Name of the driver, such as `QEMU` or `Test`.
    pub(super) fn driver(&self) -> Result<String> {
        // SAFETY: the text belongs to the connection and is copied at once.
        let text = unsafe { (self.api.driver)(self.handle) };
        if text.is_null() {
            return Err(self.api.error("ask which driver it is"));
        }
        // SAFETY: as above.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Version of libvirt at the other end, and of the hypervisor, in thousands.
    pub(super) fn versions(&self) -> Result<(u64, u64)> {
        let (mut daemon, mut hypervisor) = (0, 0);
        // SAFETY: both are written to during the calls only.
        self.api.done(unsafe { (self.api.daemon_version)(self.handle, &mut daemon) }, "ask for libvirt's version")?;
        // SAFETY: as above.
        let asked = unsafe { (self.api.hypervisor_version)(self.handle, &mut hypervisor) };
        self.api.done(asked, "ask for the hypervisor's version")?;
        Ok((daemon, hypervisor))
    }

    /// What the host can do, as XML.
    pub(super) fn capabilities(&self) -> Result<String> {
        // SAFETY: the connection is open.
        self.api.owned_text(unsafe { (self.api.capabilities)(self.handle) }, "ask for its capabilities")
    }

    /// What domains of this kind (`kvm`, `qemu`) can be here, as XML.
    pub(super) fn domain_capabilities(&self, kind: &str) -> Result<String> {
        let tried = format!("ask what domains of type {kind} can be");
        let text = c_string(kind, &tried)?;
        let none = ptr::null();
        // SAFETY: null stands for the default of the emulator, architecture and machine.
        let xml = unsafe { (self.api.domain_capabilities)(self.handle, none, none, none, text.as_ptr(), 0) };
        self.api.owned_text(xml, &tried)
    }

    /// Defines a domain; it is not started.
    pub(super) fn define(&self, xml: &str) -> Result<Domain> {
        let text = c_string(xml, "define a domain")?;
        // SAFETY: the text is good during the call.
        self.domain(unsafe { (self.api.define)(self.handle, text.as_ptr(), 0) }, "define a domain")
    }

    /// Starts a domain that is never defined, and that ends with the connection, however that ends.
    pub(super) fn create_passing(&self, xml: &str) -> Result<Domain> {
        let text = c_string(xml, "start a domain")?;
        // SAFETY: the text is good during the call.
        let handle = unsafe { (self.api.create_xml)(self.handle, text.as_ptr(), START_AUTODESTROY) };
        self.domain(handle, "start a domain")
    }

    /// The domain of that name.
    pub(super) fn by_name(&self, name: &str) -> Result<Domain> {
        let tried = format!("find the domain {name}");
        let text = c_string(name, &tried)?;
        // SAFETY: the text is good during the call.
        self.domain(unsafe { (self.api.by_name)(self.handle, text.as_ptr()) }, &tried)
    }

    /// The domain with that UUID.
    pub(super) fn by_uuid(&self, uuid: &str) -> Result<Domain> {
        let tried = format!("find the domain {uuid}");
        let text = c_string(uuid, &tried)?;
        // SAFETY: the text is good during the call.
        self.domain(unsafe { (self.api.by_uuid)(self.handle, text.as_ptr()) }, &tried)
    }

    fn domain(&self, handle: Handle, tried: &str) -> Result<Domain> {
        Ok(Domain { api: self.api, handle: self.api.handle(handle, tried)? })
    }

    /// A stream that blocks, not connected to anything yet.
    fn stream(&self) -> Result<Stream> {
        // SAFETY: the connection is open.
        let handle = self.api.handle(unsafe { (self.api.new_stream)(self.handle, 0) }, "make a stream")?;
        Ok(Stream(Arc::new(StreamHandle { api: self.api, handle })))
    }

    /// The channel to the guest's virtio port of that name, through libvirt.
    pub(super) fn channel(&self, domain: &Domain, port: &str) -> Result<Stream> {
        let tried = format!("open the domain's channel {port}");
        let text = c_string(port, &tried)?;
        let stream = self.stream()?;
        // SAFETY: all three are good during the call, and the stream is of the domain's connection.
        let opened = unsafe { (self.api.open_channel)(domain.handle, text.as_ptr(), stream.0.handle, 0) };
        self.api.done(opened, &tried)?;
        Ok(stream)
    }

    /// The domain's first console or serial line, through libvirt.
    pub(super) fn console(&self, domain: &Domain) -> Result<Stream> {
        let stream = self.stream()?;
        // SAFETY: null stands for the first; the others are good during the call, and the stream is of the domain's connection.
        let opened = unsafe { (self.api.open_console)(domain.handle, ptr::null(), stream.0.handle, 0) };
        self.api.done(opened, "open the domain's console")?;
        Ok(stream)
    }
}

/// A domain.
pub(super) struct Domain {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: libvirt's domains may be used by any thread, and by several at once.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used after this. The domain itself stays as it is.
        unsafe { (self.api.free_domain)(self.handle) };
    }
}

impl Domain {
    /// Its name.
    pub(super) fn name(&self) -> Result<String> {
        // SAFETY: the text belongs to the domain and is copied at once.
        let text = unsafe { (self.api.name)(self.handle) };
        if text.is_null() {
            return Err(self.api.error("ask for its name"));
        }
        // SAFETY: as above.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Its UUID, as text.
    pub(super) fn uuid(&self) -> Result<String> {
        // `VIR_UUID_STRING_BUFLEN` is 37.
        let mut text: [c_char; 37] = [0; 37];
        // SAFETY: the buffer is as long as libvirt says, and ends with a zero.
        self.api.done(unsafe { (self.api.uuid)(self.handle, text.as_mut_ptr()) }, "ask for its UUID")?;
        // SAFETY: as above.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Starts it; paused, it has not run an instruction yet.
    pub(super) fn create(&self, paused: bool) -> Result<()> {
        let flags = if paused { START_PAUSED } else { 0 };
        // SAFETY: the domain is ours.
        self.api.done(unsafe { (self.api.create)(self.handle, flags) }, "start the domain")
    }

    /// Lets a paused one run.
    pub(super) fn resume(&self) -> Result<()> {
        // SAFETY: the domain is ours.
        self.api.done(unsafe { (self.api.resume)(self.handle) }, "let the domain run")
    }

    /// Ends it as pulling the plug would.
    pub(super) fn destroy(&self) -> Result<()> {
        // SAFETY: the domain is ours.
        self.api.done(unsafe { (self.api.destroy)(self.handle) }, "stop the domain")
    }

    /// Takes its definition away, with what `flags` (`VIR_DOMAIN_UNDEFINE_*`) says.
    pub(super) fn undefine(&self, flags: u32) -> Result<()> {
        // SAFETY: the domain is ours.
        self.api.done(unsafe { (self.api.undefine)(self.handle, flags) }, "undefine the domain")
    }

    /// Its state (`virDomainState`).
    pub(super) fn state(&self) -> Result<i32> {
        let (mut state, mut reason) = (0, 0);
        // SAFETY: both are written to during the call only.
        let asked = unsafe { (self.api.state)(self.handle, &mut state, &mut reason, 0) };
        self.api.done(asked, "ask for the domain's state")?;
        Ok(state)
    }

    /// What it is now, as XML.
    pub(super) fn description(&self) -> Result<String> {
        // SAFETY: the domain is ours.
        self.api.owned_text(unsafe { (self.api.description)(self.handle, 0) }, "read the domain's description")
    }

    /// CPU time of its first virtual CPUs so far, nanoseconds.
    pub(super) fn vcpu_times_ns(&self, most: u32) -> Result<Vec<u64>> {
        let mut infos = vec![VcpuInfo::default(); most as usize];
        let room = c_int::try_from(infos.len()).unwrap_or(c_int::MAX);
        // SAFETY: there is room for as many as said; maps are not asked for.
        let count = unsafe { (self.api.vcpus)(self.handle, infos.as_mut_ptr(), room, ptr::null_mut(), 0) };
        self.api.done(count, "ask for its virtual CPUs' time")?;
        infos.truncate(usize::try_from(count).unwrap_or(0));
        Ok(infos.iter().map(|info| info.cpu_time_ns).collect())
    }

    /// Pins a running virtual CPU to one CPU of the host.
    pub(super) fn pin_vcpu(&self, vcpu: u32, cpu: u32) -> Result<()> {
        let tried = format!("pin virtual CPU {vcpu} to CPU {cpu}");
        let mut map: [c_uchar; CPU_MAP_BYTES] = [0; CPU_MAP_BYTES];
        match map.get_mut(cpu as usize / 8) {
            Some(byte) => *byte |= 1 << (cpu % 8),
            None => return Err(LibvirtError::Text { tried }),
        }
        let length = CPU_MAP_BYTES as c_int;
        // SAFETY: the map is as long as said.
        let pinned = unsafe { (self.api.pin_vcpu)(self.handle, vcpu, map.as_mut_ptr(), length, AFFECT_LIVE) };
        self.api.done(pinned, &tried)
    }

    /// Puts it back to one of its snapshots.
    pub(super) fn revert(&self, snapshot: &str) -> Result<()> {
        let tried = format!("revert the domain to its snapshot {snapshot}");
        let text = c_string(snapshot, &tried)?;
        // SAFETY: the text is good during the call.
        let handle = self.api.handle(unsafe { (self.api.snapshot)(self.handle, text.as_ptr(), 0) }, &tried)?;
        // SAFETY: the handle is ours and freed once.
        let reverted = self.api.done(unsafe { (self.api.revert)(handle, 0) }, &tried);
        // SAFETY: as above.
        unsafe { (self.api.free_snapshot)(handle) };
        reverted
    }
}

struct StreamHandle {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: libvirt's streams may be used by any thread; one may read while another writes.
unsafe impl Send for StreamHandle {}
// SAFETY: as above.
unsafe impl Sync for StreamHandle {}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        // SAFETY: the last user is gone. A stream that has ended already cannot be aborted, which is as well.
        unsafe {
            (self.api.abort)(self.handle);
            (self.api.free_stream)(self.handle);
        }
    }
}

/// A stream of bytes through libvirt. Clones are the same stream.
#[derive(Clone)]
pub(super) struct Stream(Arc<StreamHandle>);

impl Stream {
    /// Ends it, also for one who waits in it.
    pub(super) fn end(&self) {
        // SAFETY: the stream is ours; ending one that has ended is refused and changes nothing.
        unsafe { (self.0.api.abort)(self.0.handle) };
    }
}

impl std::io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // SAFETY: the buffer is as long as said.
        let read = unsafe { (self.0.api.receive)(self.0.handle, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(read).map_err(|_| std::io::Error::other(self.0.api.error("read from the channel")))
    }
}

impl std::io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // SAFETY: the bytes are as many as said.
        let sent = unsafe { (self.0.api.send)(self.0.handle, bytes.as_ptr().cast(), bytes.len()) };
        usize::try_from(sent).map_err(|_| std::io::Error::other(self.0.api.error("write to the channel")))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
