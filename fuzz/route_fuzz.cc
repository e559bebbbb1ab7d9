// Any bytes as a request to a server with small models: the first line is the path, the rest the body,
// as JSON or a form. The server replies, and never with an internal error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fuzz_folder.h"
#include "fuzz_model.h"
#include "model/network.h"
#include "serve/http/http_error.h"
#include "serve/service.h"

namespace {

using namespace heed;
using namespace heed::serve;

class FuzzedRequest : public HttpRequest {
 public:
  explicit FuzzedRequest(std::string_view text) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    path = text.substr(0, line_end);
    body_ = text.substr(std::min(line_end + 1, text.size()));
    method = body_.empty() ? "GET" : "POST";
  }
  std::string header(const std::string& name) const override {
    if (name != "Content-Type") return "";
    return body_.starts_with('{') ? "application/json" : "application/x-www-form-urlencoded";
  }
  std::string read_body(int64_t most_bytes) override {
    if (static_cast<int64_t>(body_.size()) > most_bytes) throw HttpError(413, "too long");
    return body_;
  }
  bool is_multipart() const override { return false; }
  bool is_client_gone() const override { return false; }

 private:
  std::string body_;
};

// A byte-level model of each family.
std::string make_model(const fuzz::ScratchFolder& folder, const char* name, Family family) {
  ModelConfig config = fuzz::smallest_config(family);
  config.vocabulary = 384;  // the byte tokenizer's
  config.max_positions = 32;
  const std::string path = folder.path() + "/" + name;
  Network(config).save(path);
  folder.write((std::string(name) + "/tokenizer_config.json").c_str(),
               R"({"tokenizer_class": "ByT5Tokenizer"})");
  return path;
}

std::unique_ptr<Service> make_service() {
  static const fuzz::ScratchFolder folder;
  ServerOptions options{.threads = 1, .kv_memory_bytes = 1 << 20};
  options.limits = {.text_bytes = 64, .texts = 4, .new_tokens = 4, .answers = 3, .running = 1};
  auto service = std::make_unique<Service>(std::move(options));
  for (const auto& [name, family] :
       {std::pair("translator", Family::encoder_decoder), std::pair("writer", Family::decoder_only),
        std::pair("reader", Family::encoder_only)}) {
    service->models().load(name, make_model(folder, name, family));
  }
  return service;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<Service> service = make_service();
  FuzzedRequest request({reinterpret_cast<const char*>(data), size});
  HttpReply reply = service->answer(request);
  if (reply.stream) {
    reply.stream([](std::string_view) { return true; }, [] { return false; });
  }
  if (reply.done) reply.done(0);
  if (reply.status == 500) std::abort();
  if (reply.content_type == "application/json" && !reply.stream &&
      !nlohmann::json::accept(reply.body)) {
    std::abort();
  }
  return 0;
}
