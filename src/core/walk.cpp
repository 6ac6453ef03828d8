#include "core/walk.hpp"

#include <algorithm>
#include <thread>

#include "base/fail.hpp"

namespace taper::detail {

namespace {

constexpr std::size_t kKeptCapacity = 4096;
thread_local std::vector<Node*> kept_list;  // of the last walk, so that the next one need not allocate
constinit thread_local const Walk* innermost = nullptr;

}  // namespace

Walk::Walk(std::span<Node* const> roots) : nodes_(std::exchange(kept_list, {})), outer_(innermost) {
  while (!collect(roots)) {  // another thread differentiates a part of this graph: after it
    let_go();
    std::this_thread::yield();
  }
  innermost = this;
  const auto later = [](const Node* a, const Node* b) { return a->position > b->position; };
  if (!in_order_) std::sort(nodes_.begin(), nodes_.end(), later);
}

Walk::~Walk() {
  let_go();
  innermost = outer_;
  if (nodes_.capacity() <= kKeptCapacity) kept_list = std::move(nodes_);
}

inline void Walk::append(Node* node) {
  in_order_ &= node->position < last_position_;
  last_position_ = node->position;
  node->wanted = true;
  node->target = false;
  nodes_.push_back(node);
}

/// False when another walk holds one of the nodes.
bool Walk::collect(std::span<Node* const> roots) {
  for (Node* root : roots)
    if (!hold(root)) return false;
  // The list is its own queue: what is in it is held, what it reaches is appended.
  for (std::size_t next = 0; next < nodes_.size(); ++next)
    for (const NodeOperand& input : nodes_[next]->inputs()) {
      if (!input.producer) continue;
      // The only owner of a node is the consumer that led here: no other way leads to it, and nothing is to be marked.
      if (input.producer->refs.is_one())
        append(input.producer);
      else if (!hold(input.producer))
        return false;
    }
  return true;
}

/// Marks `node` and appends it, unless it is marked already. False when another thread's walk holds it.
bool Walk::hold(Node* node) {
  const Walk* holder = nullptr;
  if (node->walk.compare_exchange_strong(holder, this, std::memory_order_acquire)) {
    append(node);
    return true;
  }
  if (holder == this) return true;
  if (is_active(holder)) {
    let_go();
    fail(ErrorKind::tape,
         "backward: called from a hook on a graph that is being differentiated: expected another graph, "
         "got op ",
         node->op->name);
  }
  return false;
}

bool Walk::is_active(const Walk* walk) const {
  const Walk* active = innermost;
  while (active && active != walk) active = active->outer_;
  return active != nullptr;
}

void Walk::let_go() noexcept {
  // The earliest first: what a node alone owns is another thread's as soon as the node is let go.
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node)
    (*node)->walk.store(nullptr, std::memory_order_release);
  nodes_.clear();
  in_order_ = true;
  last_position_ = UINT64_MAX;
}

}  // namespace taper::detail
