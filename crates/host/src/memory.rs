//! How the allocator gives memory back.

/// From this size on, in bytes, a piece of memory is taken from the system by itself and goes back when it is freed. Nothing
/// but large answers and files is that large.
#[cfg(target_env = "gnu")]
const LARGE: std::ffi::c_int = 1 << 20;

/// Has large pieces of memory go back to the system as soon as they are freed; to be called before anything large is read.
///
/// By itself, the allocator of glibc takes the first large piece that is freed as a sign that more of that size will be
/// wanted, and from then on keeps what is freed, in a heap per thread: a few large answers, one after the other, would leave
/// the process larger by their sum.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    #[expect(
        unsafe_code,
        reason = "there is no other way to tell the allocator; it takes two numbers and no pointer"
    )]
    // SAFETY: `mallopt` may be called at any time, and takes any value for these two; one it does not like changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}
