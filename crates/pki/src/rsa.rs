//! RSA keys of any size. The safe interface of the crypto library can make 2048, 3072, 4096 and 8192 bits; an install-config may ask
//! for the sizes between, and the library itself makes those as well. This is the only place that calls it directly.
#![expect(unsafe_code, reason = "aws-lc-rs has no name for 5120, 6144 and 7168 bits")]

use aws_lc_sys::{
    BN_free, BN_new, BN_set_u64, OPENSSL_free, RSA_F4, RSA_free, RSA_generate_key_ex, RSA_new,
    RSA_private_key_to_bytes,
};
use std::ptr::null_mut;

/// A new private key as PKCS#1, in DER.
pub(crate) fn generate(bits: u16) -> Option<Vec<u8>> {
    // SAFETY: each object is the library's own, is asked for null before it is used, and is freed once, by its guard, also where
    // something fails; the encoding is copied before it is freed.
    unsafe {
        let exponent = Owned::new(BN_new(), BN_free)?;
        let key = Owned::new(RSA_new(), RSA_free)?;
        let (mut bytes, mut length) = (null_mut(), 0);
        let made = BN_set_u64(exponent.object, u64::from(RSA_F4.unsigned_abs())) == 1
            && RSA_generate_key_ex(key.object, bits.into(), exponent.object, null_mut()) == 1
            && RSA_private_key_to_bytes(&raw mut bytes, &raw mut length, key.object) == 1;
        // Cleared as it is freed.
        let encoded = Owned::new(bytes, free_bytes).filter(|_| made)?;
        Some(std::slice::from_raw_parts(encoded.object, length).to_vec())
    }
}

/// Frees what the library allocated.
struct Owned<T> {
    object: *mut T,
    free: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    fn new(object: *mut T, free: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        (!object.is_null()).then_some(Self { object, free })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: not null, made by the library, and not freed before: only this guard has it.
        unsafe { (self.free)(self.object) }
    }
}

unsafe extern "C" fn free_bytes(bytes: *mut u8) {
    // SAFETY: as the caller of a guard promises.
    unsafe { OPENSSL_free(bytes.cast()) }
}
