// The service worker of the hosted playground (.ci/site.py): the page is kept when it is first opened, and answered from
// there ever after. Another page under the same address is another worker, for its hash is in it.
const PAGE = "@HASH@";
const PLACES = ["./", "./index.html"].map((place) => new URL(place, self.location).href);

self.addEventListener("install", (event) => {
  const fresh = PLACES.map((place) => new Request(place, { cache: "reload" }));
  event.waitUntil(
    caches
      .open(PAGE)
      .then((kept) => kept.addAll(fresh))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name !== PAGE).map((name) => caches.delete(name));
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(old(names)))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  address.hash = address.search = "";
  if (event.request.method === "GET" && PLACES.includes(address.href))
    event.respondWith(caches.match(address.href).then((kept) => kept ?? fetch(event.request)));
});
