#include "config/diagnostics.hpp"

#include <algorithm>
#include <utility>

#include "base/fail.hpp"

namespace taper::config {

namespace {

constexpr std::size_t kPointerColumns = 200;

std::string joined(const std::string& a, const char* separator, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + separator + b;
}

std::string layer_of(const Diagnostic& diagnostic) {
  return diagnostic.layer.empty() ? "" : cat("layer ", shown(diagnostic.layer));
}

std::string parenthesised(const std::string& text) { return text.empty() ? "" : cat(" (", text, ")"); }

}  // namespace

Diagnostics::Diagnostics() : Diagnostics(Source("", "")) {}

Diagnostics::Diagnostics(Source source) : source_(std::make_shared<const Source>(std::move(source))) {}

void Diagnostics::add(Diagnostic diagnostic) {
  if (++count_ <= kMost) kept_.push_back(std::move(diagnostic));
}

std::string Diagnostics::as_compiler(const Diagnostic& diagnostic) const {
  std::string where = diagnostic.origin.empty() ? source_->file() : shown(diagnostic.origin);
  std::string excerpt;
  if (diagnostic.span) {
    const Position position = source_->position(diagnostic.span->begin);
    where = cat(source_->file(), ":", position.line, ":", position.column);
    excerpt = source_->excerpt(*diagnostic.span);
  }
  const std::string what = shown(diagnostic.pointer, kPointerColumns) + parenthesised(layer_of(diagnostic));
  return cat(joined(where, ": ", "error"), ": ", joined(what, ": ", diagnostic.message), "\n", excerpt);
}

std::string Diagnostics::as_sentence(const Diagnostic& diagnostic) const {
  std::string place = shown(diagnostic.origin);
  if (diagnostic.span) place = cat("line ", source_->position(diagnostic.span->begin).line);
  std::string where = shown(diagnostic.pointer, kPointerColumns);
  if (where.empty()) where = source_->file().empty() ? "config" : source_->file();
  return cat(where, parenthesised(joined(layer_of(diagnostic), ", ", place)), ": ", diagnostic.message, "\n");
}

std::string Diagnostics::listing(Form form) const {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& diagnostic : kept_) sorted.push_back(&diagnostic);
  const auto offset = [](const Diagnostic* diagnostic) {
    return diagnostic->span ? diagnostic->span->begin : std::string::npos;
  };
  // Those of one place stay in their order.
  std::sort(sorted.begin(), sorted.end(), [&](const Diagnostic* a, const Diagnostic* b) {
    return offset(a) != offset(b) ? offset(a) < offset(b) : a < b;
  });
  std::string out;
  for (const Diagnostic* diagnostic : sorted) out += (this->*form)(*diagnostic);
  if (count_ > kMost) out += cat("... and ", count_ - kMost, " more\n");
  return out;
}

std::string Diagnostics::render() const { return listing(&Diagnostics::as_compiler); }

std::string Diagnostics::sentences() const {
  std::string out = listing(&Diagnostics::as_sentence);
  if (!out.empty()) out.pop_back();
  return out;
}

std::string Diagnostics::summary() const {
  return cat(count_ == 0 ? "no" : cat(count_), count_ == 1 ? " error" : " errors",
             source_->file().empty() ? "" : cat(" in ", source_->file()));
}

void Diagnostics::throw_if_any() const {
  if (!empty()) throw ConfigError(*this);
}

ConfigError::ConfigError(const Diagnostics& diagnostics)
    : Error(ErrorKind::config, diagnostics.sentences()),
      rendered_(std::make_shared<const std::string>(cat(diagnostics.render(), diagnostics.summary(), "\n"))) {}

}  // namespace taper::config
