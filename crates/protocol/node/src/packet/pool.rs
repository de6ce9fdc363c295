//! Buffers of one size that return to their pool when the last packet in them is dropped, so that a running
//! node allocates nothing per packet.
//!
//! Single-threaded like the port: one thread owns the pool and all of its packets.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// A pool of free buffers.
#[derive(Clone, Debug)]
pub struct Pool(Rc<Shelf>);

#[derive(Debug)]
struct Shelf {
    size: usize,
    /// Free buffers above this number go back to the allocator.
    keep: usize,
    /// Buffers in use.
    taken: Cell<usize>,
    free: RefCell<Vec<Rc<PooledBytes>>>,
}

#[derive(Debug)]
struct PooledBytes {
    bytes: Box<[u8]>,
    home: Weak<Shelf>,
}

/// A read-only buffer. A clone shares it.
#[derive(Clone, Debug)]
pub struct Buffer(Rc<PooledBytes>);

/// A writable buffer with one owner.
#[derive(Debug)]
pub struct Lease(Buffer);

impl Pool {
    /// Creates a pool of buffers of `size` bytes that keeps up to `keep` free ones.
    pub fn new(size: usize, keep: usize) -> Self {
        Self(Rc::new(Shelf {
            size,
            keep,
            taken: Cell::new(0),
            free: RefCell::new(Vec::with_capacity(keep)),
        }))
    }

    /// Takes a buffer with arbitrary content.
    pub fn lease(&self) -> Lease {
        let free = self.0.free.borrow_mut().pop();
        self.0.taken.set(self.0.taken.get() + 1);
        Lease(Buffer(free.unwrap_or_else(|| {
            Rc::new(PooledBytes {
                bytes: vec![0; self.0.size].into_boxed_slice(),
                home: Rc::downgrade(&self.0),
            })
        })))
    }

    /// Bytes of the buffers in use.
    pub fn taken_bytes(&self) -> usize {
        self.0.taken.get() * self.0.size
    }

    /// Number of free buffers.
    #[cfg(test)]
    fn free(&self) -> usize {
        self.0.free.borrow().len()
    }
}

impl Buffer {
    /// All of its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Takes another buffer of at least `len` bytes, from the same pool if its buffers are long enough.
    pub fn another(&self, len: usize) -> Lease {
        let home = self.0.home.upgrade().filter(|home| home.size >= len);
        home.map_or_else(
            || {
                Lease(Self(Rc::new(PooledBytes {
                    bytes: vec![0; len].into_boxed_slice(),
                    home: Weak::new(),
                })))
            },
            |home| Pool(home).lease(),
        )
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if Rc::strong_count(&self.0) == 1
            && let Some(home) = self.0.home.upgrade()
        {
            home.taken.set(home.taken.get() - 1);
            let mut free = home.free.borrow_mut();
            if free.len() < home.keep {
                free.push(Rc::clone(&self.0));
            }
        }
    }
}

impl Lease {
    /// All of its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// All of its bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let slot = Rc::get_mut(&mut self.0.0).expect("a lease is the only owner of its buffer");
        &mut slot.bytes
    }

    /// Makes the buffer read-only and shareable.
    pub fn share(self) -> Buffer {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_owner_is_gone() {
        let pool = Pool::new(64, 2);
        let mut lease = pool.lease();
        lease.bytes_mut()[0] = 7;
        let address = lease.bytes().as_ptr();
        let (first, second) = {
            let buffer = lease.share();
            (buffer.clone(), buffer)
        };
        drop(first);
        assert_eq!(pool.free(), 0);
        assert_eq!(second.bytes()[0], 7);
        drop(second);
        assert_eq!(pool.free(), 1);
        let mut again = pool.lease();
        assert_eq!(again.bytes().as_ptr(), address);
        again.bytes_mut()[63] = 1;
    }

    #[test]
    fn a_buffer_finds_its_pool_again() {
        let pool = Pool::new(64, 2);
        let free = pool.lease();
        let (address, buffer) = (free.bytes().as_ptr(), pool.lease().share());
        drop(free);
        let other = buffer.another(64);
        assert_eq!((other.bytes().as_ptr(), pool.free()), (address, 0));
        // A buffer longer than those of the pool does not return to it.
        assert_eq!(buffer.another(65).bytes().len(), 65);
        assert_eq!(pool.free(), 0);
        drop((other, pool));
        assert_eq!(buffer.another(8).bytes().len(), 8);
    }

    #[test]
    fn the_pool_keeps_a_bounded_number_and_may_go_first() {
        let pool = Pool::new(8, 2);
        let leases: Vec<Lease> = (0..5).map(|_| pool.lease()).collect();
        assert_eq!(pool.taken_bytes(), 5 * 8);
        drop(leases);
        assert_eq!((pool.free(), pool.taken_bytes()), (2, 0));
        let last = pool.lease().share();
        drop(last.clone());
        assert_eq!(pool.taken_bytes(), 8);
        drop(pool);
        assert_eq!(last.bytes().len(), 8);
    }
}
