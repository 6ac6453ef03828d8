#include "io/csv_scanner.hpp"

#include <algorithm>
#include <array>

#include "base/fail.hpp"

namespace taper::io {

namespace {

constexpr std::size_t kChunk = 1 << 16;
constexpr int kEndOfFile = -1;
constexpr std::string_view kCandidates = "\t;|,";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvScanner::CsvScanner(const ByteSource& source, char delimiter)
    : source_(source), reader_(source), delimiter_(delimiter) {
  const std::string start = source.read(0, std::size_t(std::min<std::int64_t>(3, source.size())));
  if (start.starts_with("\xFE\xFF") || start.starts_with("\xFF\xFE"))
    fail(ErrorKind::format, source.name(), ": text is UTF-16: expected UTF-8");
  char mark[3];
  if (start == "\xEF\xBB\xBF") reader_.read(mark, sizeof mark);
}

void CsvScanner::fail_row(const char* what) const {
  fail(ErrorKind::format, source_.name(), ": row ", row_, ": ", what);
}

int CsvScanner::peek() {
  if (at_ == chunk_.size()) {
    if (reader_.remaining() == 0) return kEndOfFile;
    chunk_.resize(std::size_t(std::min<std::int64_t>(reader_.remaining(), kChunk)));
    reader_.read(chunk_.data(), chunk_.size());
    at_ = 0;
  }
  return static_cast<unsigned char>(chunk_[at_]);
}

int CsvScanner::get() {
  const int c = peek();
  if (c != kEndOfFile) ++at_;
  return c;
}

void CsvScanner::put(int c) {
  if (c == 0) fail_row("a NUL byte: expected UTF-8 text");
  if (text_.size() == kMaxRecord) fail_row("record is too long: expected at most 16 MiB; is a closing quote missing?");
  text_ += char(c);
}

bool CsvScanner::next() {
  const bool one_column = row_ > 0 && ends_.size() == 1;
  while (scan_record())
    if (one_column || ends_.size() > 1 || !text_.empty()) return true;
  return false;
}

bool CsvScanner::scan_record() {
  if (peek() == kEndOfFile) return false;
  ++row_;
  text_.clear();
  ends_.clear();
  while (true) {
    if (peek() == '"') {
      scan_quoted();
    } else {
      scan_plain();
    }
    if (ends_.size() == kMaxColumns) fail_row("too many columns: expected at most 16384");
    ends_.push_back(text_.size());
    const int c = get();
    if (c == delimiter_) continue;
    if (c == '\r' && get() != '\n') fail_row("a carriage return without a line feed");
    if (c == '\r' || c == '\n' || c == kEndOfFile) return true;
    fail_row("text after a closing quote");
  }
}

void CsvScanner::scan_quoted() {
  get();
  while (true) {
    const int c = get();
    if (c == kEndOfFile) fail_row("the closing quote is missing");
    if (c == '"') {
      if (peek() != '"') return;
      get();
    }
    put(c);
  }
}

void CsvScanner::scan_plain() {
  const std::size_t begin = text_.size();
  for (int c = peek(); c != delimiter_ && c != '\n' && c != '\r' && c != kEndOfFile; c = peek()) {
    if (c == '"') fail_row("a quote inside a field: expected the whole field in quotes, with doubled quotes inside");
    if (text_.size() > begin || !is_blank(char(c))) put(c);
    get();
  }
  while (text_.size() > begin && is_blank(text_.back())) text_.pop_back();
}

char sniff_delimiter(const ByteSource& source) {
  constexpr std::size_t kRecords = 10;
  using Counts = std::array<std::size_t, kCandidates.size()>;
  const std::string head = source.read(0, std::size_t(std::min<std::int64_t>(source.size(), kChunk)));
  std::vector<Counts> records;
  Counts counts{};
  bool quoted = false, started = false;
  for (const char c : head) {
    if (c == '"') quoted = !quoted;
    const std::size_t which = quoted ? std::string_view::npos : kCandidates.find(c);
    if (which != std::string_view::npos) ++counts[which];
    if (!quoted && c == '\n' && started) {
      records.push_back(counts);
      counts = {};
      started = false;
      if (records.size() == kRecords) break;
    } else if (c != '\n' && c != '\r') {
      started = true;
    }
  }
  // The last record counts when it ends with the file, or is all there is.
  if (started && (records.empty() || std::int64_t(head.size()) == source.size())) records.push_back(counts);
  if (records.empty()) return ',';
  for (std::size_t which = 0; which < kCandidates.size(); ++which) {
    const std::size_t expected = records[0][which];
    const auto agrees = [&](const Counts& record) { return record[which] == expected; };
    if (expected > 0 && std::all_of(records.begin(), records.end(), agrees)) return kCandidates[which];
  }
  const auto most = std::max_element(records[0].begin(), records[0].end());
  return *most == 0 ? ',' : kCandidates[std::size_t(most - records[0].begin())];
}

}  // namespace taper::io
