#include "taper/shared.hpp"

#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using taper::Shared;

namespace {

struct Base {
  explicit Base(int& living) : living_(living) { ++living_; }
  virtual ~Base() { --living_; }
  virtual int kind() const { return 1; }
  int& living_;
};
struct Derived : Base {
  using Base::Base;
  int kind() const override { return 2; }
};

}  // namespace

TEST_CASE("a shared object lives until its last handle goes") {
  int living = 0;
  {
    Shared<Base> first = Shared<Base>::make(living);
    CHECK(living == 1);
    Shared<Base> second = first;
    first = nullptr;
    CHECK(living == 1);
    CHECK_FALSE(first);
    CHECK(second);
    CHECK(second->kind() == 1);
    const Shared<Base> third = std::move(second);
    CHECK_FALSE(second);
    CHECK((*third).kind() == 1);
  }
  CHECK(living == 0);
}

TEST_CASE("a handle to a derived class becomes one to its base, and any handle one to void") {
  int living = 0;
  {
    const Shared<Derived> derived = Shared<Derived>::make(living);
    const Shared<Base> base = derived;
    CHECK(base->kind() == 2);
    CHECK(base == Shared<Base>(derived));
    CHECK(base.as<Derived>() == derived);
    CHECK_FALSE(Shared<Base>::make(living).as<Derived>());
    Shared<void> anything = base;
    CHECK(anything.get() == base.get());
    CHECK(living == 1);
  }
  CHECK(living == 0);
  {
    const Shared<void> only = Shared<Derived>::make(living);
    CHECK(living == 1);
  }
  CHECK(living == 0);
}

TEST_CASE("a handle may be assigned to itself and to what it holds on to") {
  struct Link {
    Shared<Link> next;
  };
  Shared<Link> head = Shared<Link>::make();
  head->next = Shared<Link>::make();
  const Shared<Link>& same = head;
  head = same;
  CHECK(head->next);
  head = head->next;
  CHECK_FALSE(head->next);
}

TEST_CASE("arguments reach the object's constructor, which may throw") {
  CHECK(*Shared<std::string>::make(3u, 'x') == "xxx");
  struct Refuses {
    explicit Refuses(int) { throw std::string("no"); }
  };
  CHECK_THROWS_AS(Shared<Refuses>::make(1), std::string);
}

TEST_CASE("handles are copied and dropped by several threads") {
  int living = 0;
  {
    const Shared<Base> object = Shared<Base>::make(living);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1009; ++i) {
          const Shared<Base> copy = object;
          Shared<Base> moved = copy;
          moved = nullptr;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(living == 1);
  }
  CHECK(living == 0);
}
