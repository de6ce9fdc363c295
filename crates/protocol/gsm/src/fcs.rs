//! The frame check sequences: 24 bits in each RLP frame, 16 in each PPP packet.
//!
//! Both are sent least significant bit first, preset the register to ones and invert the result.
//! Sources: GSM 04.22, section 5.2.6; RFC 1662, appendix C.

/// The generator of RLP's check sequence, bits reversed: the bit for x^23 is the lowest.
const RLP: u32 = 0x00AD_85DD;
/// The generator of PPP's check sequence, bits reversed.
const PPP: u32 = 0x8408;

const fn table(generator: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = register & 1;
            register >>= 1;
            if carry == 1 {
                register ^= generator;
            }
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
}

static RLP_TABLE: [u32; 256] = table(RLP);
static PPP_TABLE: [u32; 256] = table(PPP);

fn remainder(table: &[u32; 256], preset: u32, octets: &[u8]) -> u32 {
    octets.iter().fold(preset, |register, octet| {
        (register >> 8) ^ table[((register ^ u32::from(*octet)) & 0xFF) as usize]
    })
}

/// RLP's check sequence of these octets, in transmission order.
pub fn rlp(octets: &[u8]) -> [u8; 3] {
    let register = !remainder(&RLP_TABLE, 0x00FF_FFFF, octets);
    let [low, middle, high, _] = register.to_le_bytes();
    [low, middle, high]
}

/// PPP's check sequence of these octets, in transmission order.
pub fn ppp(octets: &[u8]) -> [u8; 2] {
    let register = !remainder(&PPP_TABLE, 0xFFFF, octets);
    let [low, high, ..] = register.to_le_bytes();
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checks_are_those_of_the_standards() {
        // Known vectors of GSM phones, and the check value of RFC 1662's sequence.
        assert_eq!(rlp(&[0; 27]), [0x19, 0x57, 0xC9]);
        let rising: Vec<u8> = (0..27).collect();
        assert_eq!(rlp(&rising), [0x82, 0x6C, 0xAE]);
        assert_eq!(ppp(b"123456789"), 0x906E_u16.to_le_bytes());
    }
}
