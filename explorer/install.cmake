# Installs the pinned npm packages where package-lock.json differs from what is installed. Several build
# trees may share this source tree, so one at a time.
file(LOCK "${SOURCE_DIR}/.npm-ci.lock" GUARD PROCESS)
file(SHA256 "${SOURCE_DIR}/package-lock.json" wanted)
set(record "${SOURCE_DIR}/node_modules/.installed")
if(EXISTS "${record}")
  file(READ "${record}" installed)
endif()
if(NOT installed STREQUAL wanted)
  execute_process(
    COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
    WORKING_DIRECTORY "${SOURCE_DIR}" RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "npm ci failed in ${SOURCE_DIR}")
  endif()
  file(WRITE "${record}" "${wanted}")
endif()
file(TOUCH "${STAMP}")
