// Before anything is drawn: the colours that were chosen here, or else the system's.
try {
  const chosen = localStorage.getItem("quire.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: the system's colours */ }
