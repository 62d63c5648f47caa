#include "promises.h"

#include <cstring>

#include "guarded.h"

Arrival::Arrival(const Napi::Value& array, size_t length, std::shared_ptr<void> memory)
    : target(Napi::Persistent(array.As<Napi::Object>())), data(std::move(memory)), bytes(length) {}

Promises::Promises(Napi::Env env, const char* name, const char* gone, std::function<void(bool)> busy)
    : state_(new State{nullptr, {}, std::move(busy), gone}) {
  const Napi::String text = Napi::String::New(env, name);
  if (napi_create_threadsafe_function(env, nullptr, nullptr, text, 0, 1, state_, OnFinalize, state_, OnAnswer,
                                      &state_->answers) != napi_ok) {
    delete state_;
    throw Napi::Error::New(env, "a thread-safe function cannot be made");
  }
  // Only work in flight keeps the program running.
  napi_unref_threadsafe_function(env, state_->answers);
}

void Promises::OnFinalize(napi_env, void* data, void*) { delete static_cast<State*>(data); }

void Promises::Stop() {
  if (state_ == nullptr) return;
  State* state = state_;
  state_ = nullptr;
  const napi_threadsafe_function answers = state->answers;
  state->answers = nullptr;
  napi_release_threadsafe_function(answers, napi_tsfn_release);
}

Napi::Value Promises::Make(Napi::Env env, uint64_t number, Arrival arrival) {
  napi_deferred deferred = nullptr;
  napi_value promise = nullptr;
  if (napi_create_promise(env, &deferred, &promise) != napi_ok) throw Napi::Error::New(env);
  state_->pending.emplace(number, Pending{deferred, std::move(arrival)});
  if (state_->pending.size() == 1) {
    napi_ref_threadsafe_function(env, state_->answers);
    state_->busy(true);
  }
  return Napi::Value(env, promise);
}

void Promises::Answer(uint64_t number, int code) {
  auto* answer = new Answered{number, code};
  if (napi_call_threadsafe_function(state_->answers, answer, napi_tsfn_nonblocking) != napi_ok) delete answer;
}

void Promises::OnAnswer(napi_env env, napi_value, void* context, void* data) {
  const std::unique_ptr<Answered> answer(static_cast<Answered*>(data));
  // No environment: it is being taken down, so no caller waits any more. The same while a thread of Node is being ended:
  // then calls fail, and no exception may leave this function.
  if (env == nullptr) return;
  try {
    Settle(env, *static_cast<State*>(context), *answer);
  } catch (const Napi::Error&) {
  }
}

bool Promises::Deliver(Napi::Env env, const Arrival& arrival) {
  if (arrival.data == nullptr) return true;
  const Bytes now = View(env, arrival.target.Value());
  if (now.length < arrival.bytes) return false;
  std::memcpy(now.data, arrival.data.get(), arrival.bytes);
  return true;
}

void Promises::Settle(Napi::Env env, State& state, const Answered& answer) {
  const Napi::HandleScope scope(env);
  auto found = state.pending.find(answer.number);
  if (found == state.pending.end()) return;
  const Pending pending = std::move(found->second);
  state.pending.erase(found);
  if (answer.code != 0)
    napi_reject_deferred(env, pending.deferred, AsError(env, NativeError{answer.code, "the device"}).Value());
  else if (!Deliver(env, pending.arrival))
    napi_reject_deferred(env, pending.deferred, Napi::TypeError::New(env, state.gone).Value());
  else napi_resolve_deferred(env, pending.deferred, env.Undefined());
  if (state.pending.empty()) {
    if (state.answers != nullptr) napi_unref_threadsafe_function(env, state.answers);
    state.busy(false);
  }
}
