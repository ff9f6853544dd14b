//! machine_approver
