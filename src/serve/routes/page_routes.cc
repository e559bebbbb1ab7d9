// The web page at /, the API description at /docs, and their files.
#include "serve/routes/page.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

std::string type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

HttpReply file_reply(const PageFile& file) {
  HttpReply reply{.body = std::string(file.content), .content_type = type_of(file.name)};
  // No third-party content, no inline scripts, no framing.
  reply.headers = {{"Content-Security-Policy",
                    "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; "
                    "base-uri 'none'; form-action 'self'"},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cache-Control", "no-cache"}};
  return reply;
}

HttpReply page_file(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return file_reply(file);
  }
  throw HttpError(404, "no such file", "not_found");
}

// The content types of all files, without parameters.
std::vector<Route::Reply> file_replies() {
  std::vector<Route::Reply> replies;
  for (const PageFile& file : page_files()) {
    const std::string type = type_of(file.name);
    replies.push_back({.schema = schema::text(), .type = type.substr(0, type.find(';'))});
  }
  return replies;
}

}  // namespace

void add_page_routes(std::vector<Route>& routes) {
  routes.push_back({.method = "GET",
                    .path = "/",
                    .about = "The web page",
                    .access = Route::Access::open,
                    .replies = {{.schema = schema::text(), .type = "text/html"}},
                    .handle = [](Call&) { return page_file("index.html"); }});
  routes.push_back({.method = "GET",
                    .path = "/docs",
                    .about = "This API as a page",
                    .access = Route::Access::open,
                    .replies = {{.schema = schema::text(), .type = "text/html"}},
                    .handle = [](Call&) { return page_file("docs.html"); }});
  routes.push_back({.method = "GET",
                    .path = "/web/{file}",
                    .about = "Files of the web page",
                    .access = Route::Access::open,
                    .replies = file_replies(),
                    .handle = [](Call& call) { return page_file(call.path_values.front()); }});
}

}  // namespace heed::serve
