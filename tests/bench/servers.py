"""The servers of the measurements, on the last core, for clients on the first."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

BODY = ('{"id":"7f3c9a52-1d0e-4b8a-9c61-0f2f6d5f1e77","name":"a small object","count":42,'
        '"tags":["a","b","c","d"]}')
SIZES = {"1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20, "64 MiB": 1 << 26, "1 GiB": 1 << 30}
CA_BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def pinned(command, core):
    return ["taskset", "-c", str(core), *map(str, command)] if os.cpu_count() > 1 else command


def first_in_line(command):
    """Before all other work of the machine, where that is allowed."""
    chrt = ["chrt", "--rr", "10"]
    try:
        allowed = subprocess.run([*chrt, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    return [*chrt, *command] if allowed else command


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nginx:
    def __init__(self, folder):
        self.folder = folder
        self.port, self.tls_port = free_port(), free_port()
        self.ca_file = folder / "bundle.pem"
        self._certificate()
        (folder / "www").mkdir()
        for name, size in SIZES.items():
            with open(folder / "www" / name.replace(" ", ""), "wb") as file:
                file.truncate(size)
        (folder / "nginx.conf").write_text(self._configuration())
        os.chmod(folder, 0o755)  # its worker is another user where this one is root
        command = ["/usr/sbin/nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "log"]
        self.process = subprocess.Popen(pinned(command, (os.cpu_count() or 1) - 1),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()

    def _certificate(self):
        key, crt = self.folder / "key.pem", self.folder / "crt.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=bench",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", crt],
                       check=True, capture_output=True)
        # As large as what clients read in earnest.
        bundle = CA_BUNDLE.read_text() if CA_BUNDLE.exists() else ""
        self.ca_file.write_text(bundle + crt.read_text())

    def _configuration(self):
        at = self.folder
        temporary = "".join(f"{kind}_temp_path {at}/{kind};" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return f"""daemon off; worker_processes 1; pid {at}/pid; error_log {at}/log;
worker_rlimit_nofile 20000;
events {{ worker_connections 10000; }}
http {{
  access_log off; {temporary}
  keepalive_requests 1000000000; keepalive_timeout 1h; default_type application/json;
  sendfile on; tcp_nopush on;
  server {{
    listen 127.0.0.1:{self.port} backlog=8192;
    location = / {{ return 200 '{BODY}'; }}
    location /files/ {{ alias {at}/www/; }}
    location /no-etag/ {{ alias {at}/www/; etag off; }}
  }}
  server {{
    listen 127.0.0.1:{self.tls_port} ssl backlog=8192;
    ssl_certificate {at}/crt.pem; ssl_certificate_key {at}/key.pem;
    location = / {{ return 200 '{BODY}'; }}
    location = /slow {{ alias {at}/www/64KiB; limit_rate 16k; }}
  }}
}}
"""

    def _wait(self):
        for port in (self.port, self.tls_port):
            deadline = time.monotonic() + 10
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if self.process.poll() is not None or time.monotonic() > deadline:
                        sys.exit("nginx does not start: " + (self.folder / "log").read_text())
                    time.sleep(0.01)

    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def file_url(self, name, etag=True):
        folder = "files" if etag else "no-etag"
        return f"http://127.0.0.1:{self.port}/{folder}/{name.replace(' ', '')}"

    def tls_url(self):
        return f"https://127.0.0.1:{self.tls_port}/"

    def slow_url(self):
        return f"https://127.0.0.1:{self.tls_port}/slow"

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Redis:
    """For `with`."""

    def __enter__(self):
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        command = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", ""]
        self.process = subprocess.Popen(pinned(command, (os.cpu_count() or 1) - 1),
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "Ready to accept connections" in line:
                return self
        sys.exit("redis-server does not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


def demand_installed():
    missing = [name for name in ("valgrind", "taskset", "openssl", "redis-server") if shutil.which(name) is None]
    if not pathlib.Path("/usr/sbin/nginx").exists():
        missing.append("nginx")
    if missing:
        sys.exit(f"missing: {', '.join(missing)}; ./dev bench installs what it needs")
