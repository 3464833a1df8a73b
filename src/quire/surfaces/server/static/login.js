import { call } from "./api.js";

const form = document.getElementById("form");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = document.getElementById("problem");
  problem.textContent = "";
  try {
    await call("POST", "/api/session", { token: document.getElementById("token").value });
    location.assign("/");
  } catch (error) {
    problem.textContent = error.message;
  }
});
