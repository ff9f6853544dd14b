//! Whether the cause that `analyze` names is the right one: faults that are made in labs, one at a time, and the score.
//!
//! In: the table of [`FAULTS`]. Each bring-up is prepared, broken, watched for a while, gathered and analyzed as a person would. Out: a
//! report that says of each fault which rule should have found it and which sentence was said.

mod answer;
mod faults;
mod inject;
mod run;
mod score;

pub use answer::{Answer, answer};
pub use faults::{FAULTS, Fault};
pub use run::{Place, run};
pub use score::{Case, Verdict, summary};
