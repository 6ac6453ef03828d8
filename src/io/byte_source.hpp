#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taper::io {

/// Bytes that can be read from any position: a regular file, or memory. Files are read, never mapped, so one that
/// is cut while it is open gives an error and not a signal.
class ByteSource {
 public:
  /// Errors: `ErrorKind::io`, `path: cannot read: <the system's reason>`, also for what is not a regular file.
  explicit ByteSource(const std::string& path);
  /// `bytes` must outlive the source; `name` takes the place of the path in error sentences.
  ByteSource(std::string name, std::string_view bytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }

  /// Copies the `n` bytes at `offset`, which lie within size(). Errors: `ErrorKind::io`.
  void read(std::int64_t offset, void* out, std::size_t n) const;
  std::string read(std::int64_t offset, std::size_t n) const;

 private:
  std::string name_;
  const char* memory_ = nullptr;
  std::int64_t size_ = 0;
  int fd_ = -1;
};

/// Bytes in order, for a format that is parsed from front to back.
class ByteReader {
 public:
  virtual ~ByteReader() = default;
  /// The next `n` bytes, which is at most remaining().
  virtual void read(void* out, std::size_t n) = 0;
  std::int64_t remaining() const { return remaining_; }

 protected:
  explicit ByteReader(std::int64_t size) : remaining_(size) {}
  std::int64_t remaining_;
};

/// A part of a `ByteSource`.
class SourceReader final : public ByteReader {
 public:
  SourceReader(const ByteSource& source, std::int64_t offset, std::int64_t size)
      : ByteReader(size), source_(source), offset_(offset) {}
  explicit SourceReader(const ByteSource& source) : SourceReader(source, 0, source.size()) {}
  void read(void* out, std::size_t n) override {
    source_.read(offset_, out, n);
    offset_ += std::int64_t(n);
    remaining_ -= std::int64_t(n);
  }

 private:
  const ByteSource& source_;
  std::int64_t offset_;
};

/// The whole file. Errors: as `ByteSource`, and `ErrorKind::format` above `limit` bytes, before any memory is taken.
std::string read_file(const std::string& path, std::int64_t limit);

}  // namespace taper::io
