//! Failed attempts leave no file descriptor open. Alone in its process, since it counts them all.
#![cfg(all(target_os = "linux", any(feature = "sync", feature = "async")))]
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

#[cfg(feature = "async")]
#[path = "dual"]
mod asynchronous {
    use rpc_bisync::as_is as bisync;
    use rpc_transport::asynchronous as twin;

    pub(crate) mod failures;
}

#[cfg(feature = "sync")]
#[path = "dual"]
mod blocking {
    use rpc_bisync::blocking as bisync;
    use rpc_transport::blocking as twin;

    pub(crate) mod failures;
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn failures_leave_no_descriptor_open() {
    #[cfg(feature = "sync")]
    {
        let fail = || blocking::failures::fail_in_every_way();
        fail();
        let before = open_descriptors();
        for _ in 0..200 {
            fail();
        }
        assert_eq!(open_descriptors(), before);
    }
    #[cfg(feature = "async")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let fail = || runtime.block_on(asynchronous::failures::fail_in_every_way());
        fail();
        let before = open_descriptors();
        for _ in 0..200 {
            fail();
        }
        assert_eq!(open_descriptors(), before);
    }
}
