#include "serve/serve_testing.h"

#include <httplib.h>

#include "model/network.h"
#include "model/presets.h"

namespace heed::serve {
namespace {

httplib::Headers to_headers(const SentHeaders& headers) { return {headers.begin(), headers.end()}; }

Received received(const httplib::Result& result) {
  if (!result) return {};
  Received answer{.status = result->status, .body = result->body};
  answer.type = result->get_header_value("Content-Type");
  for (const auto& [name, value] : result->headers) answer.headers[name] = value;
  return answer;
}

httplib::Client client_of(int port) {
  httplib::Client client("127.0.0.1", port);
  client.set_read_timeout(60);
  return client;
}

ModelConfig config_of(const std::string& kind) {
  ModelConfig config = preset("bert-tiny");
  config.vocabulary = 40, config.width = 32, config.ffn = 64, config.heads = 2;
  config.max_positions = 64;
  if (kind == "mlm") {
    config.head = Head::masked_lm;
    config.pooler = false;
  } else if (kind == "labels" || kind == "grades" || kind == "pairs" || kind == "tags") {
    const bool scores = kind == "grades" || kind == "pairs";
    config.head = kind == "labels" ? Head::classifier
                  : scores         ? Head::regression
                                   : Head::token_classifier;
    config.labels = scores ? 1 : 3;
    config.pooler = kind != "tags";
  } else {
    config.head = Head::language_model;
    config.family = kind == "gpt" ? Family::decoder_only : Family::encoder_decoder;
    config.token_types = 0, config.pooler = false, config.embedding_norm = false;
    config.encoder_layers = kind == "gpt" ? 0 : 2, config.decoder_layers = 2;
    config.decoder_start_id = 0;
    config.eos_id = kind == "gpt" ? -1 : 3;  // its weights are random: let it write on
  }
  return config;
}

}  // namespace

Received Client::get(const std::string& path, const SentHeaders& headers) const {
  return received(client_of(port_).Get(path, to_headers(headers)));
}

Received Client::post_text(const std::string& path, const std::string& body,
                           const std::string& type, const SentHeaders& headers) const {
  return received(client_of(port_).Post(path, to_headers(headers), body, type));
}

Received Client::remove(const std::string& path, const SentHeaders& headers) const {
  return received(client_of(port_).Delete(path, to_headers(headers)));
}

RawClient::RawClient(int port, double seconds) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  const timeval time{.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) close();
}

RawClient::~RawClient() { close(); }

void RawClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool RawClient::send(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string RawClient::receive(std::string_view end) const {
  std::string all;
  char buffer[4096];
  while (end.empty() || all.find(end) == std::string::npos) {
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    all.append(buffer, static_cast<size_t>(count));
  }
  return all;
}

std::string ServeTest::make_model(const std::string& kind) const {
  const std::string folder = path(kind);
  std::filesystem::create_directories(folder);
  Network(config_of(kind), /*seed=*/7).save(folder);
  if (kind == "parser" || kind == "pairs") {  // as training leaves it
    Json config = Json::parse(read_text(folder + "/config.json"));
    if (kind == "parser") config["finetuning_task"] = "parsing";
    if (kind == "pairs") config["heed_text_pairs"] = true;
    write(kind + "/config.json", config.dump());
  }
  write(kind + "/vocab.txt",
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\non\nmat\ndog\nrun\n##s\nfast\nshe\n"
        "lives\nin\nnew\nyork\n.\na\nis\nw22\nw23\nw24\nw25\nw26\nw27\nw28\nw29\nw30\n"
        "w31\nw32\nw33\nw34\nw35\nw36\nw37\nw38\nw39\n");
  return folder;
}

void ServeTest::start(const std::vector<std::string>& kinds, ServerOptions options) {
  for (const std::string& kind : kinds) options.models.push_back({.folder = make_model(kind)});
  options.port = 0;
  if (options.threads == 0) options.threads = 1;
  if (!options.log) {
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_.emplace_back(line);
    };
  }
  server_ = std::make_unique<Server>(std::move(options));
  running_ = std::thread([this] { server_->run(); });
}

void ServeTest::stop() {
  if (!running_.joinable()) return;
  server_->stop();
  running_.join();
}

void ServeTest::TearDown() {
  stop();
  server_.reset();
  FolderTest::TearDown();
}

}  // namespace heed::serve
