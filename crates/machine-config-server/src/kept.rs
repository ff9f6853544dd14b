//! A rack that is switched on at once asks a thousand times for the same config. It is made once, and never handed out when it is old.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was made of something, by name, until that is another. It is compared itself, not its age or version: it costs little to read
/// and much to work on.
pub(crate) struct Kept<K, V>(Mutex<HashMap<String, (K, V)>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone> Kept<K, V> {
    /// Who comes while it is made waits for it. Nothing is kept of what fails, nor what was there before.
    pub(crate) fn of<E>(&self, name: &str, source: K, make: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = all.get(name).filter(|(of, _)| *of == source) {
            return Ok(made.clone());
        }
        all.remove(name);
        let made = make(&source)?;
        all.insert(name.into(), (source, made.clone()));
        Ok(made)
    }
}

/// A look at something far away, for all who came before it began. Nobody is told of one that began earlier: what had happened when
/// somebody asked is seen, as if each had looked for itself.
pub(crate) struct Shared<T> {
    begun: AtomicU64,
    /// And which look it was.
    last: tokio::sync::Mutex<Option<(u64, T)>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { begun: AtomicU64::new(0), last: tokio::sync::Mutex::default() }
    }
}

impl<T: Clone> Shared<T> {
    /// A look whose asker leaves is given up; the next one who waits looks.
    pub(crate) async fn of(&self, look: impl AsyncFnOnce() -> T) -> T {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if let Some((_, seen)) = last.as_ref().filter(|(number, _)| *number > before) {
            return seen.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let seen = look().await;
        *last = Some((number, seen.clone()));
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use tokio::sync::Semaphore;

    #[test]
    fn it_is_made_again_when_its_source_is_another() {
        let (kept, made) = (Kept::default(), AtomicU64::new(0));
        let ask = |name: &str, source: &'static str| {
            kept.of(name, source, |source| {
                made.fetch_add(1, Ordering::Relaxed);
                if source.is_empty() { Err("empty") } else { Ok(source.to_uppercase()) }
            })
        };
        for _ in 0..1000 {
            assert_eq!(ask("master", "a"), Ok("A".into()));
            assert_eq!(ask("arbiter", "b"), Ok("B".into()), "one does not take the other's place");
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
        assert_eq!(ask("master", "b"), Ok("B".into()));
        assert_eq!(ask("master", "a"), Ok("A".into()), "as it was before");
        assert_eq!(ask("master", ""), Err("empty"));
        assert_eq!(ask("master", ""), Err("empty"), "and asked again");
        assert_eq!(made.load(Ordering::Relaxed), 6);
    }

    #[tokio::test]
    async fn a_thousand_share_a_look_that_began_after_they_came() {
        let (shared, looks, allowed) = (Shared::default(), AtomicU64::new(0), Semaphore::new(0));
        let look = async || {
            let number = looks.fetch_add(1, Ordering::Relaxed) + 1;
            let _ = allowed.acquire().await.map(|permit| permit.forget());
            number
        };
        let ask = || shared.of(look);
        let mut first = Box::pin(ask());
        assert!(futures::poll!(&mut first).is_pending(), "it looks");
        let mut others = Box::pin(join_all((0..1000).map(|_| ask())));
        assert!(futures::poll!(&mut others).is_pending());
        allowed.add_permits(1);
        assert_eq!(first.await, 1);
        allowed.add_permits(1);
        assert_eq!(others.await, vec![2; 1000], "what the first one saw may have changed before they came");
        allowed.add_permits(1);
        assert_eq!(ask().await, 3, "nothing is kept");
    }

    #[tokio::test]
    async fn one_who_leaves_takes_nobody_along() {
        let (shared, allowed) = (Shared::default(), Semaphore::new(0));
        let look = async || allowed.acquire().await.is_ok();
        let mut gone = Box::pin(shared.of(look));
        assert!(futures::poll!(&mut gone).is_pending());
        let mut waits = Box::pin(shared.of(look));
        assert!(futures::poll!(&mut waits).is_pending());
        drop(gone);
        allowed.add_permits(1);
        assert!(waits.await);
    }
}
