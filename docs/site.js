// Browsers run the modules of the explorer from a server only.
if (location.protocol === "file:") {
  for (const link of document.querySelectorAll('a[href$="explore/index.html"]')) {
    link.href = link.href.replace("explore/index.html", "guides/teach.html#from-a-server");
  }
}
