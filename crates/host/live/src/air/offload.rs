//! Switches off what a network card does to frames before the emulator receives them.
//!
//! Receive offloads merge frames into super-packets (GRO, LRO), and send offloads leave segmentation to a card.
//! Both ends of the emulator carry single frames, so offloads are off while it runs and restored afterwards, by
//! the kernel's ethtool interface (`linux/ethtool.h`, `ETHTOOL_SFEATURES`): the program `ethtool` is not
//! needed. A veth pair still passes on super-packets of the machine at its other end; `segment` splits those.

#![expect(unsafe_code, reason = "ethtool has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
/// Kernels have about 60 features; a count above this is an error.
const FEATURES_MAX: usize = 4096;

/// Features that make frames longer than those on the wire, by their kernel names.
const UNWANTED: [&str; 11] = [
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-lro",
    "rx-udp-gro-forwarding",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
];

/// The offloads of one interface that were switched off. Dropping it switches them on again.
#[derive(Debug)]
pub(super) struct OffloadsOff {
    ethtool: Ethtool,
    /// Bit mask of the features that were on, in the kernel's numbering.
    were_on: Vec<u32>,
}

impl OffloadsOff {
    /// Switches off the features that merge frames or leave them unsegmented.
    pub(super) fn new(interface: &str) -> io::Result<Self> {
        let ethtool = Ethtool::open(interface)?;
        let names = ethtool.feature_names()?;
        let mut were_on = ethtool.active_features(names.len())?;
        for (block, bits) in were_on.iter_mut().enumerate() {
            let unwanted = (0..32).filter(|bit| {
                let name = names.get(block * 32 + bit).map_or("", String::as_str);
                UNWANTED.contains(&name)
            });
            *bits &= unwanted.fold(0, |mask, bit| mask | 1 << bit);
        }
        ethtool.set_features(&were_on, false)?;
        Ok(Self { ethtool, were_on })
    }
}

impl Drop for OffloadsOff {
    fn drop(&mut self) {
        // If the interface is gone, there is nothing to restore.
        let _ = self.ethtool.set_features(&self.were_on, true);
    }
}

#[derive(Debug)]
struct Ethtool {
    socket: OwnedFd,
    interface: String,
}

impl Ethtool {
    fn open(interface: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        Ok(Self {
            socket,
            interface: interface.to_owned(),
        })
    }

    /// Issues a command. `words` is the command's structure, whose first word is the command code.
    fn call(&self, words: &mut [u32]) -> io::Result<()> {
        let mut request = ifreq(&self.interface);
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the kernel reads and writes no more than the structure of the command, for which the
        // callers below have allocated room: its size follows from the numbers in its head.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Names of all features, by number.
    fn feature_names(&self) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, sset_mask (64 bit), then one count for each bit.
        let mask = (1u64 << ETH_SS_FEATURES).to_ne_bytes();
        let half =
            |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
        let mut info = [ETHTOOL_GSSET_INFO, 0, half(0), half(4), 0];
        self.call(&mut info)?;
        let count = info[4] as usize;
        if count > FEATURES_MAX {
            return Err(io::Error::other(format!("{count} offload features")));
        }
        // struct ethtool_gstrings: cmd, string_set, len, then the strings.
        let mut strings = vec![0; 3 + count * ETH_GSTRING_LEN / 4];
        strings[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
        self.call(&mut strings)?;
        let bytes: Vec<u8> = strings[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
        let text = |s: &[u8]| {
            let end = s.iter().position(|b| *b == 0).unwrap_or(s.len());
            String::from_utf8_lossy(&s[..end]).into_owned()
        };
        Ok(bytes.chunks_exact(ETH_GSTRING_LEN).map(text).collect())
    }

    /// Which of `count` features are active, 32 to a word.
    fn active_features(&self, count: usize) -> io::Result<Vec<u32>> {
        // struct ethtool_gfeatures: cmd, size, then available, requested, active, never_changed for
        // each block of 32.
        let blocks = count.div_ceil(32);
        let mut features = vec![0; 2 + blocks * 4];
        features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
        self.call(&mut features)?;
        Ok(features[2..].chunks_exact(4).map(|b| b[2]).collect())
    }

    /// Switches the features with a bit in `which` on or off.
    fn set_features(&self, which: &[u32], on: bool) -> io::Result<()> {
        // struct ethtool_sfeatures: cmd, size, then valid, requested for each block of 32.
        let mut request = vec![ETHTOOL_SFEATURES, which.len() as u32];
        request.extend(
            which
                .iter()
                .flat_map(|&bits| [bits, if on { bits } else { 0 }]),
        );
        self.call(&mut request)
    }
}

/// A request about `interface`, a name of at most 15 bytes.
fn ifreq(interface: &str) -> libc::ifreq {
    // SAFETY: this is a C structure of integers, and a union with a pointer, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request
}
