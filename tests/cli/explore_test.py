"""`normscope explore`: the answers of its server, which requests it accepts, and how it ends."""

import re
import signal
import socket
import subprocess
import unittest
from http.client import HTTPConnection

from command import COMMAND, OWN_MODEL, CommandTest

HINT = "NORMSCOPE_BUILD_EXPLORER=ON"


def built_in():
    done = subprocess.run([COMMAND, "explore", "/no/such/model"], capture_output=True, text=True, timeout=60)
    return HINT not in done.stderr


class WithoutExplorer(CommandTest):
    @unittest.skipIf(built_in(), "the explorer is built into this command")
    def test_says_how_to_build_it(self):
        done = self.run_command("explore")
        self.assertEqual(done.returncode, 3)
        self.assertIn(HINT, done.stderr)


@unittest.skipUnless(built_in(), "the explorer is not built into this command")
class Explore(CommandTest):
    def serve(self, *arguments):
        process = subprocess.Popen([COMMAND, "explore", *map(str, arguments)], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.url = process.stdout.readline().strip()
        self.port = int(re.match(r"http://127\.0\.0\.1:(\d+)/", self.url).group(1))
        return process

    def get(self, path, method="GET", body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.addCleanup(connection.close)
        connection.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        return response, response.read()

    def raw(self, data):
        """The status line of the answer to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as client:
            client.sendall(data)
            return client.makefile("rb").readline().decode()

    def test_serves_its_page_with_a_strict_policy(self):
        self.serve()
        page, body = self.get("/")
        self.assertEqual(page.status, 200)
        self.assertIn(b"<title>Normscope", body)
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertNotIn("unsafe-inline", page.headers["Content-Security-Policy"])
        for name, value in {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
                            "Cross-Origin-Opener-Policy": "same-origin",
                            "Cross-Origin-Resource-Policy": "same-origin"}.items():
            self.assertEqual(page.headers[name], value)
        core, body = self.get("/normscope.wasm")
        self.assertEqual(core.headers["Content-Type"], "application/wasm")
        self.assertEqual(body[:4], b"\0asm")
        self.assertEqual(int(core.headers["Content-Length"]), len(body))
        head, nothing = self.get("/normscope.wasm", method="HEAD")
        self.assertEqual((head.status, nothing), (200, b""))
        self.assertEqual(head.headers["Content-Length"], core.headers["Content-Length"])
        same, nothing = self.get("/normscope.wasm", If_None_Match=core.headers["ETag"])
        self.assertEqual((same.status, nothing), (304, b""))
        self.assertEqual(self.get("/normscope.wasm", If_None_Match='"another"')[0].status, 200)

    def test_serves_nothing_else(self):
        self.serve()
        for path in ("/none", "/../main.js", "/..", "//", "/./main.js", "/%2e%2e/etc/passwd", "/etc/passwd", "/main.js/",
                     "/%6dain.js", "/main.js%00", "/served/report.json", "/MAIN.JS", "/index.html/..", "/\\main.js"):
            self.assertIn(" 404 ", self.raw(f"GET {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\n\r\n".encode()), path)
        self.assertEqual(self.get("/main.js?query")[0].status, 200)
        self.assertEqual(self.get("/offline.js")[0].status, 404, "a service worker would outlive the server")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"):
            answer, _ = self.get("/", method=method)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertEqual(self.get("/", body=b"x")[0].status, 413)

    def test_answers_to_its_own_name_only(self):
        self.serve()
        for host in ("evil.example", f"evil.example:{self.port}", "localhost", f"localhost:{self.port + 1}",
                     f"127.0.0.1.evil.example:{self.port}"):
            self.assertEqual(self.get("/", Host=host)[0].status, 421, host)
        for host in ("localhost", "127.0.0.1", "[::1]"):
            self.assertEqual(self.get("/", Host=f"{host}:{self.port}")[0].status, 200, host)
        self.assertIn(" 400 ", self.raw(b"GET / HTTP/1.1\r\n\r\n"))

    def test_bounds_what_is_sent(self):
        self.serve()
        host = f"Host: localhost:{self.port}\r\n".encode()
        self.assertIn(" 414 ", self.raw(b"GET /" + b"a" * 4000 + b" HTTP/1.1\r\n" + host + b"\r\n"))
        self.assertIn(" 431 ", self.raw(b"GET / HTTP/1.1\r\n" + host + b"a: " + b"b" * 20000 + b"\r\n\r\n"))
        self.assertIn(" 431 ", self.raw(b"GET / HTTP/1.1\r\n" + host + b"a: b\r\n" * 200 + b"\r\n"))
        self.assertIn(" 431 ", self.raw(b"x" * 20000))
        self.assertIn(" 400 ", self.raw(b"\x16\x03\x01\0\r\n\r\n"))
        self.assertIn(" 505 ", self.raw(b"GET / HTTP/3.0\r\n" + host + b"\r\n"))
        # Clients that send nothing do not make others wait.
        silent = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(40)]
        self.assertEqual(self.get("/")[0].status, 200)
        for client in silent:
            client.close()

    def test_listens_on_this_machine_only(self):
        self.serve()
        address = socket.gethostbyname(socket.gethostname())
        if address.startswith("127."):
            self.skipTest("this machine has no other address")
        with self.assertRaises(OSError):
            socket.create_connection((address, self.port), timeout=5)

    def test_ends_on_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.serve("--quiet")
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=30), 130)

    def test_says_that_a_port_is_taken(self):
        self.serve()
        done = self.run_command("explore", "--port", self.port)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"127.0.0.1:{self.port}: Address already in use", done.stderr)

    def test_serves_the_report_of_a_model(self):
        self.serve(OWN_MODEL)
        folder = re.search(r"#/checkpoint\?example=(served/[0-9a-f]{32})$", self.url).group(1)
        report = self.run_command("report", OWN_MODEL, "-o", "r.html", "--json", "-").stdout
        answer, body = self.get(f"/{folder}/report.json")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertEqual(body.decode().strip(), report.strip())
        self.assertEqual(self.get(f"/{folder}/charts.json")[0].status, 200)
        # Other users of the machine reach the port, but do not know the name; nor is it the same twice.
        self.assertEqual(self.get("/served/report.json")[0].status, 404)
        self.serve(OWN_MODEL)
        self.assertEqual(self.get(f"/{folder}/report.json")[0].status, 404)
        # The model's own files are not served.
        self.assertEqual(self.get("/model.safetensors")[0].status, 404)


class BadInput(CommandTest):
    def test_names_what_is_wrong(self):
        self.assertEqual(self.run_command("explore", "--port", "65536").returncode, 2)
        self.assertEqual(self.run_command("explore", "--port", "-1").returncode, 2)
        self.assertEqual(self.run_command("explore", "none.safetensors").returncode, 3)


if __name__ == "__main__":
    unittest.main()
