//! The kernel's questions, passed through to the directory below. Without direct I/O: etcd maps its database into memory.

use super::disk::{Disk, Handle};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::fcntl::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Nobody else changes these files.
const TTL: Duration = Duration::from_secs(60);

pub(super) struct Served(pub Arc<Disk>);

fn no_such_file() -> io::Error {
    io::Error::from_raw_os_error(nix::libc::ENOENT)
}

fn attributes(number: u64, seen: &Metadata) -> FileAttr {
    let at = |seconds: i64| {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    };
    FileAttr {
        ino: INodeNo(number),
        size: seen.len(),
        blocks: seen.blocks(),
        atime: at(seen.atime()),
        mtime: at(seen.mtime()),
        ctime: at(seen.ctime()),
        crtime: at(seen.ctime()),
        kind: FileType::from_std(seen.file_type()).unwrap_or(FileType::RegularFile),
        perm: u16::try_from(seen.mode() & 0o7777).unwrap_or_default(),
        nlink: u32::try_from(seen.nlink()).unwrap_or(u32::MAX),
        uid: seen.uid(),
        gid: seen.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn answer(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e.into()),
    }
}

impl Served {
    fn path(&self, number: INodeNo) -> io::Result<PathBuf> {
        Ok(self.0.root.join(self.0.state().nodes.path(number.0).ok_or_else(no_such_file)?))
    }

    /// Below the disk's root, and below everything.
    fn child(&self, parent: INodeNo, name: &OsStr) -> io::Result<(PathBuf, PathBuf)> {
        let path = self.0.state().nodes.child(parent.0, name).ok_or_else(no_such_file)?;
        let whole = self.0.root.join(&path);
        Ok((path, whole))
    }

    fn entry(&self, path: PathBuf, whole: &Path) -> io::Result<FileAttr> {
        let seen = fs::symlink_metadata(whole)?;
        Ok(attributes(self.0.state().nodes.told_of(path), &seen))
    }

    /// Always to write: what is there is read before it is overwritten, and a length may change.
    fn open_file(&self, number: u64, file: File) -> FileHandle {
        let mut state = self.0.state();
        state.next_handle += 1;
        let handle = state.next_handle;
        state.handles.insert(handle, Handle { number, file: Arc::new(file) });
        FileHandle(handle)
    }

    fn file(&self, number: INodeNo, handle: Option<FileHandle>) -> io::Result<Arc<File>> {
        match handle {
            Some(handle) => Ok(self.0.state().open(handle.0)?.1),
            None => Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path(number)?)?)),
        }
    }

    fn seen(&self, number: INodeNo, handle: Option<FileHandle>) -> io::Result<FileAttr> {
        let seen = match handle.map(|handle| self.0.state().open(handle.0)) {
            Some(Ok((_, file))) => file.metadata()?,
            _ => fs::symlink_metadata(self.path(number)?)?,
        };
        Ok(attributes(number.0, &seen))
    }

    fn make(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32) -> io::Result<(FileAttr, File)> {
        let (path, whole) = self.child(parent, name)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&whole)?;
        chown(&whole, Some(req.uid()), Some(req.gid()))?;
        Ok((self.entry(path, &whole)?, file))
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, how: fn(&Path) -> io::Result<()>) -> io::Result<()> {
        let (path, whole) = self.child(parent, name)?;
        how(&whole)?;
        let mut state = self.0.state();
        if let Some(number) = state.nodes.removed(&path) {
            state.unsynced.remove(&number);
        }
        Ok(())
    }

    fn entries(&self, number: INodeNo) -> io::Result<Vec<(FileType, std::ffi::OsString)>> {
        let mut entries = vec![(FileType::Directory, ".".into()), (FileType::Directory, "..".into())];
        for entry in fs::read_dir(self.path(number)?)? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            entries.push((kind, entry.file_name()));
        }
        entries[2..].sort_by(|a, b| a.1.cmp(&b.1));
        Ok(entries)
    }
}

fn time(wanted: TimeOrNow) -> SystemTime {
    match wanted {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.child(parent, name).and_then(|(path, whole)| self.entry(path, &whole)) {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        // What was not synced of a file that is only forgotten is still not synced: it comes back under another number, so it stays known.
        let mut state = self.0.state();
        let is_clean = state.unsynced.get(&number.0).is_none_or(|unsynced| unsynced.is_empty());
        if is_clean && state.nodes.forgotten(number.0, times) {
            state.unsynced.remove(&number.0);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.seen(number, handle) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(e) => reply.error(e.into()),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            if let Some(mode) = mode {
                fs::set_permissions(self.path(number)?, Permissions::from_mode(mode & 0o7777))?;
            }
            if uid.is_some() || gid.is_some() {
                chown(self.path(number)?, uid, gid)?;
            }
            if let Some(size) = size {
                self.0.resize(number.0, &*self.file(number, handle)?, size)?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = FileTimes::new();
                let times = atime.map_or(times, |at| times.set_accessed(time(at)));
                let times = mtime.map_or(times, |at| times.set_modified(time(at)));
                File::open(self.path(number)?)?.set_times(times)?;
            }
            self.seen(number, handle)
        };
        match set() {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(e) => reply.error(e.into()),
        }
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = self.child(parent, name).and_then(|(path, whole)| {
            DirBuilder::new().mode(mode & !umask).create(&whole)?;
            chown(&whole, Some(req.uid()), Some(req.gid()))?;
            self.entry(path, &whole)
        });
        match made {
            Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name, |path| fs::remove_file(path)));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name, |path| fs::remove_dir(path)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let rename = || {
            let (from, whole_from) = self.child(parent, name)?;
            let (to, whole_to) = self.child(new_parent, new_name)?;
            let mut state = self.0.state();
            fs::rename(whole_from, whole_to)?;
            if let Some(replaced) = state.nodes.renamed(&from, &to) {
                state.unsynced.remove(&replaced);
            }
            Ok(())
        };
        answer(reply, rename());
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.path(number).and_then(|path| OpenOptions::new().read(true).write(true).open(path)) {
            Ok(file) => reply.opened(self.open_file(number.0, file), FopenFlags::empty()),
            Err(e) => reply.error(e.into()),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.make(req, parent, name, mode & !umask) {
            Ok((attr, file)) => {
                let handle = self.open_file(attr.ino.0, file);
                reply.created(&TTL, &attr, Generation(0), handle, FopenFlags::empty());
            }
            Err(e) => reply.error(e.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = || {
            let (_, file) = self.0.state().open(handle.0)?;
            let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
                    0 => break,
                    more => filled += more,
                }
            }
            bytes.truncate(filled);
            io::Result::Ok(bytes)
        };
        match read() {
            Ok(bytes) => reply.data(&bytes),
            Err(e) => reply.error(e.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(handle.0, offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.state().handles.remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync(handle.0, reply);
    }

    /// Names are there at once; but a disk whose syncs fail fails these, too.
    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if self.0.syncs_fail() {
            return reply.error(Errno::EIO);
        }
        answer(reply, self.path(number).and_then(|path| File::open(path)?.sync_all()));
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = match self.entries(number) {
            Ok(entries) => entries,
            Err(e) => return reply.error(e.into()),
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, (kind, name)) in entries.into_iter().enumerate().skip(from) {
            let next = at as u64 + 1;
            // Any number that is none of ours: programs get the true one when they look.
            if reply.add(INodeNo(u64::MAX - next), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match nix::sys::statvfs::statvfs(&self.0.root) {
            Ok(s) => reply.statfs(
                s.blocks(),
                s.blocks_free(),
                s.blocks_available(),
                s.files(),
                s.files_free(),
                u32::try_from(s.block_size()).unwrap_or(4096),
                255,
                u32::try_from(s.fragment_size()).unwrap_or(4096),
            ),
            Err(e) => reply.error(io::Error::from(e).into()),
        }
    }

    /// Room is made before there is anything in it: a file's new length counts, where it has one.
    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let keeps_size = mode == FallocateFlags::FALLOC_FL_KEEP_SIZE.bits();
        if mode != 0 && !keeps_size {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let allocate = || {
            let file = self.file(number, Some(handle))?;
            let end = |n: u64| i64::try_from(n).map_err(io::Error::other);
            fallocate(&*file, FallocateFlags::FALLOC_FL_KEEP_SIZE, end(offset)?, end(length)?)?;
            if !keeps_size && file.metadata()?.len() < offset + length {
                self.0.resize(number.0, &file, offset + length)?;
            }
            Ok(())
        };
        answer(reply, allocate());
    }
}
